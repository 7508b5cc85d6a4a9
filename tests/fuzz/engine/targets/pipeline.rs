//! Pipelines in TOML: read and planned, as `run --dry-run` does.
#![no_main]

use planetree_base::panics::print_only_unguarded;
use planetree_base::storage::Access;
use planetree_run::pipeline::{Commands, PipelinePlan, RunRequest};
use std::cell::OnceCell;

libfuzzer_sys::fuzz_target!(init: print_only_unguarded(), |text: &str| {
    thread_local! {
        static COMMANDS: OnceCell<Commands> = const { OnceCell::new() };
    }
    let file = format!("/dev/shm/planetree-fuzz-{}.toml", std::process::id());
    std::fs::write(&file, text).expect("a file for the input");
    let request = RunRequest {
        pipeline: file,
        output: Some("/dev/shm/planetree-fuzz-none".to_owned()),
        set: Vec::new(),
        force: Vec::new(),
        resume: false,
        access: Access::Explicit,
    };
    COMMANDS.with(|commands| {
        let commands = commands.get_or_init(|| Commands::new(planetree_cli::command_line()));
        if let Ok(plan) = PipelinePlan::new(&request, commands) {
            plan.steps.iter().for_each(|step| drop(plan.arguments(step)));
        }
    });
});
