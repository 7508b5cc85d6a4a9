//! What tests assert of every learner: bytes that depend only on rows and parameters, and models that SQL takes.

use super::datasets::same_rows;
use super::files::room;
use super::sql::sql_in;
use super::tables::{RoundMetric, rounds_of};
use super::training::{least_memory, trained_bytes};
use std::path::Path;

/// Trains the model `m` with the validation set `vali`; returns its bytes and its log.
pub fn trained_with_log(directory: &Path, arguments: &str) -> (Vec<u8>, Vec<RoundMetric>) {
    let bytes = trained_bytes(directory, &format!("{arguments} --valid vali --rounds rounds"));
    (bytes, rounds_of(&directory.join("rounds")))
}

/// Asserts that models and logs do not depend on partitions and threads. `kinds` are prefixes of the datasets of
/// [`same_rows`].
pub fn assert_bytes_depend_only_on_rows(variants: &[&str], kinds: &[&str]) {
    assert_depends_only_on_rows(variants, kinds, trained_with_log);
}

/// Asserts that models do not depend on partitions and threads. The log of trees has an RMSE of the training data that is
/// summed partition by partition.
pub fn assert_models_depend_only_on_rows(variants: &[&str], kinds: &[&str]) {
    let trained =
        |directory: &Path, arguments: &str| trained_bytes(directory, &format!("{arguments} --valid vali"));
    assert_depends_only_on_rows(variants, kinds, trained);
}

fn assert_depends_only_on_rows<T: PartialEq>(
    variants: &[&str],
    kinds: &[&str],
    trained: impl Fn(&Path, &str) -> T,
) {
    let room = room();
    same_rows(room.path());
    for variant in variants {
        for kind in kinds {
            let outcome = |data: &str, options: &str| {
                trained(room.path(), &format!("{variant} --data {kind}{data} {options}"))
            };
            let expected = outcome("one", "--threads 1");
            for (data, options) in [
                ("one", "--threads 4"),
                ("many", "--threads 1"),
                ("many", "--threads 2"),
                ("few", "--threads 4"),
            ] {
                assert!(outcome(data, options) == expected, "{variant} {kind}{data} {options}");
            }
        }
    }
}

/// Asserts that a training has the same model with as little memory as it accepts.
pub fn assert_a_memory_limit_keeps_the_bytes(directory: &Path, arguments: &str) {
    let expected = trained_bytes(directory, arguments);
    let limit = least_memory(directory, arguments);
    let limited = trained_bytes(directory, &format!("{arguments} --memory-limit {limit}MiB"));
    assert!(limited == expected, "{arguments}: {limit} MiB");
}

/// Asserts that a cluster trains the same models with the same logs on a dataset of [`same_rows`].
#[cfg(feature = "cluster")]
pub fn assert_a_cluster_trains_the_same_bytes(
    directory: &Path,
    variants: &[&str],
    data: &str,
    cluster: &str,
) {
    for variant in variants {
        let outcome =
            |options: &str| trained_with_log(directory, &format!("{variant} --data {data} {options}"));
        assert!(outcome(&format!("--cluster {cluster}")) == outcome("--threads 2"), "{variant}");
    }
}

/// Asserts that SQL scores the set `vali` with the model `m` as in the predictions `p`, and that the contributions of
/// features add up to the scores.
pub fn assert_sql_scores_and_explains(directory: &Path) {
    let ask = |query: &str| sql_in(directory, "--format csv", query, &[]).ok().stdout;
    let scored =
        ask("select max(abs(a.score - b.score)) from score('m', 'vali') a join 'p' b using (query_id, rank)");
    assert!(scored.ends_with("\n0.0\n"), "{scored}");
    let sums = ask(
        "select max(abs(total - score)) < 1e-9 from (select sum(contribution) + max(expected) as total, max(score) as score \
         from (select *, row_number() over () as place from explain_score('m', 'vali')) group by cast(place - 1 as bigint) / (select count(distinct feature) from explain_score('m', 'vali')))",
    );
    assert!(sums.ends_with("true\n"), "{sums}");
}
