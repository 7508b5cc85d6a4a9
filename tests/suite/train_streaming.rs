//! What the paper says of streaming histograms holds on data of its shape: few bins suffice, one
//! level more makes up for them, and more workers cost nothing.

use crate::learning::*;
use crate::support::*;
use std::path::Path;

fn yahoo(directory: &Path, rows: u32) {
    run(directory, &format!("sample --shape yahoo --rows {rows} --seed 3 --output text")).ok();
    run(directory, "convert text/train.txt --output data").ok();
    run(directory, "convert text/vali.txt --output vali").ok();
}

/// The last training error, and the last error of the validation set if there is one.
fn errors(directory: &Path, arguments: &str) -> (f64, Option<f64>) {
    train(directory, &format!("--model m --rounds rounds {arguments}"));
    let log = rounds_of(&directory.join("rounds"));
    let last = |split: &str| course(&log, split, "rmse").last().copied();
    (last("train").unwrap(), last("valid"))
}

#[test]
fn more_than_twenty_bins_change_little() {
    let room = room();
    yahoo(room.path(), 8000);
    let with = |bins: u32| {
        let settings = format!("--set max_bin={bins} --set num_trees=25 --set learning_rate=0.1");
        errors(room.path(), &format!("--preset pgbrt --data data --valid vali {settings}"))
    };
    let (_, best) = with(100);
    for bins in [20, 50] {
        let (_, found) = with(bins);
        eprintln!("{bins} bins: {found:?}, 100 bins: {best:?}");
        assert_close(found.unwrap(), best.unwrap(), 0.01, &format!("{bins} bins"));
    }
}

#[test]
fn one_level_more_makes_up_for_bins() {
    let room = room();
    yahoo(room.path(), 8000);
    let common = "--data data --set num_trees=20 --set learning_rate=0.1 --set min_data_in_leaf=1";
    for depth in [3, 4] {
        let (exact, _) = errors(room.path(), &format!("--preset gbrt {common} --set max_depth={depth}"));
        let deeper = format!("--preset pgbrt {common} --set max_bin=50 --set max_depth={}", depth + 1);
        let (streaming, _) = errors(room.path(), &deeper);
        eprintln!("depth {depth} exact {exact}, one more streaming {streaming}");
        assert!(streaming <= exact, "depth {depth}: streaming {streaming}, exact {exact}");
    }
}

#[test]
fn more_workers_lose_nothing() {
    let room = room();
    yahoo(room.path(), 8000);
    let settings = "--set max_bin=50 --set num_trees=25 --set learning_rate=0.1";
    let (one, one_valid) =
        errors(room.path(), &format!("--preset pgbrt --data data --valid vali {settings}"));
    for rows in [1200, 150] {
        run(room.path(), &format!("convert text/train.txt --output parts{rows} --partition-rows {rows}"))
            .ok();
        let arguments = format!("--preset pgbrt --data parts{rows} --valid vali {settings}");
        let (many, many_valid) = errors(room.path(), &arguments);
        eprintln!("one worker {one} {one_valid:?}, partitions of {rows} rows {many} {many_valid:?}");
        assert_close(many, one, 0.01, "training error");
        assert_close(many_valid.unwrap(), one_valid.unwrap(), 0.01, "validation error");
    }
}
