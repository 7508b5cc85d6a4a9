//! SQL text: parsed, checked and planned, but not executed.
#![no_main]

use planetree_base::panics::print_only_unguarded;
use planetree_base::storage::Access;
use planetree_sql::{Destination, Printer, ReplacePolicy, ResultFormat, Roots, Session, SessionOptions};
use std::cell::OnceCell;

fn session() -> Session {
    let roots = Roots::new([], [], Access::Explicit).expect("a current directory");
    let options = SessionOptions {
        threads: 1,
        memory_limit: 256 << 20,
        owns_process: false,
        roots,
        replace: ReplacePolicy::Results,
        cluster: None,
    };
    let session = Session::new(options).expect("a session");
    let tables = "CREATE TABLE t AS SELECT 1 AS a, 'x' AS b, 2.5 AS c, [1, 2] AS d, date '2020-01-01' AS e";
    run(&session, tables);
    session
}

fn run(session: &Session, text: &str) {
    let mut printer =
        Printer { format: ResultFormat::Csv, destination: Destination::stdout(), results: 0, headers: true };
    let _ = session.run(text, &mut printer, &mut |_| {});
}

libfuzzer_sys::fuzz_target!(init: print_only_unguarded(), |text: &str| {
    thread_local! {
        static SESSION: OnceCell<Session> = const { OnceCell::new() };
    }
    let statement = text.split(';').next().unwrap_or_default();
    SESSION.with(|cell| run(cell.get_or_init(session), &format!("EXPLAIN {statement}")));
});
