//! Tables in folders named `key=value` that have many folders, or unusual names.

use crate::support::*;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Writes a CSV file of one row into a folder of a table.
fn write_folder(table: &Path, folder: &str, header: &str, row: &str) {
    let folder = table.join(folder);
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("part.csv"), format!("{header}\n{row}\n")).unwrap();
}

/// Runs a query on a number of threads, with at most 400 open files.
fn query(at: &Path, threads: &str, text: &str) -> String {
    let mut command = Command::new("prlimit");
    command.current_dir(at).args(["--nofile=400:400", "--", BINARY, "sql", "--format", "csv"]);
    Ran::of(command.args(["--threads", threads, "-c", text]).output().unwrap()).ok().stdout
}

/// Each folder was once a scan with a projection of its own: 400 folders of 150 columns were too large a statement, and
/// needed as many open files.
#[test]
fn many_folders_of_a_wide_table_are_one_scan() {
    let room = room();
    let at = room.path();
    let header = (0..150).map(|column| format!("c{column}")).collect::<Vec<_>>().join(",");
    for day in 0..450 {
        let row = vec![day.to_string(); 150].join(",");
        write_folder(&at.join("wide"), &format!("day={day:03}"), &header, &row);
    }
    let days: String = (0..450).map(|day| format!("{day},{day:03}\n")).collect();
    for threads in ["1", "4"] {
        let query = |text: &str| query(at, threads, text);
        let totals = "SELECT count(*) AS n, count(DISTINCT day) AS days, sum(c149) AS total FROM wide";
        assert_eq!(query(totals), "n,days,total\n450,450,101025\n");
        // The rows are in the order of the folders.
        assert_eq!(query("SELECT c149, day FROM wide"), format!("c149,day\n{days}"));
        assert_eq!(query("SELECT day FROM wide LIMIT 2"), "day\n000\n001\n");
        let last = "SELECT c0, day FROM wide WHERE day >= '448' AND c3 < 449";
        assert_eq!(query(last), "c0,day\n448,448\n");
    }
    let plan = query(at, "2", "EXPLAIN SELECT * FROM wide WHERE day = '007'");
    assert!(plan.contains("day=007/part.csv") && !plan.contains("day=008/"), "{plan}");
}

#[test]
fn rows_are_in_the_order_of_the_folders_and_null_is_no_value() {
    let room = room();
    let at = room.path();
    // As text, the path of the second folder is before that of the first one.
    let folders = [
        ("day=1/market=us", "1"),
        ("day=1-x/market=us", "2"),
        ("day=2/market=__HIVE_DEFAULT_PARTITION__", "3"),
        ("day=2/market=us", "4"),
    ];
    for (folder, row) in folders {
        write_folder(&at.join("t"), folder, "a", row);
    }
    fs::write(at.join("t/day=1/market=us/empty.csv"), "").unwrap();
    for threads in ["1", "2", "3", "8"] {
        let rows = |filter: &str| {
            let rows = query(at, threads, &format!("SELECT a FROM t {filter}"));
            rows.lines().skip(1).collect::<Vec<_>>().join(" ")
        };
        for (filter, expected) in [
            ("", "1 2 3 4"),
            ("WHERE market = 'us'", "1 2 4"),
            ("WHERE market <> 'de'", "1 2 4"),
            ("WHERE NOT market = 'de'", "1 2 4"),
            ("WHERE market IS NULL", "3"),
            ("WHERE market IS NULL OR day = '1'", "1 3"),
            ("WHERE day IN ('2', '1-x') AND a > 2", "3 4"),
            ("WHERE day = (SELECT max(day) FROM t) ORDER BY a", "3 4"),
            ("WHERE coalesce(market, 'none') = 'none'", "3"),
            ("WHERE day = '3'", ""),
            ("LIMIT 2", "1 2"),
        ] {
            assert_eq!(rows(filter), expected, "{threads} threads: {filter}");
        }
    }
    let columns = query(at, "2", "SELECT market, a, day FROM t");
    assert_eq!(columns, "market,a,day\nus,1,1\nus,2,1-x\n,3,2\nus,4,2\n");
    assert_eq!(query(at, "2", "SELECT count(*) AS n FROM t"), "n\n4\n");
    assert_eq!(query(at, "2", "SELECT count(market) AS n FROM t"), "n\n3\n");
}
