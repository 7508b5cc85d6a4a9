//! The rankings to compare: files and runs, in the order of the command line.

use clap::{ArgMatches, Args, FromArgMatches};

/// The rankings to compare, as the parser knows them: each option by itself.
#[derive(Debug, Args)]
struct RankingArguments {
    /// Per-query metrics in Parquet, or predictions in Parquet, CSV or JSON: two or more files or URLs, or one table with
    /// several systems
    #[arg(value_name = "[NAME=]FILE", required_unless_present_any = ["run", "feature", "random"])]
    files: Vec<String>,

    /// Run file of trec_eval, judged by --qrels; may be repeated
    #[arg(long, value_name = "[NAME=]FILE", requires = "qrels")]
    run: Vec<String>,
}

/// A ranking to compare.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RankingOption {
    /// `[NAME=]FILE`
    pub text: String,
    pub is_run: bool,
}

/// The rankings to compare, in the order of the command line: files and runs may be mixed, and a difference is that of
/// the later one from the earlier one.
#[derive(Debug)]
pub(super) struct RankingOptions {
    pub in_order: Vec<RankingOption>,
}

impl FromArgMatches for RankingOptions {
    fn from_arg_matches(matches: &ArgMatches) -> std::result::Result<Self, clap::Error> {
        let RankingArguments { files, run } = RankingArguments::from_arg_matches(matches)?;
        let mut placed = Vec::new();
        for (id, texts, is_run) in [("files", files, false), ("run", run, true)] {
            let places = matches.indices_of(id).into_iter().flatten();
            placed.extend(places.zip(texts).map(|(place, text)| (place, RankingOption { text, is_run })));
        }
        placed.sort_by_key(|(place, _)| *place);
        Ok(RankingOptions { in_order: placed.into_iter().map(|(_, ranking)| ranking).collect() })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> std::result::Result<(), clap::Error> {
        *self = RankingOptions::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for RankingOptions {
    fn augment_args(command: clap::Command) -> clap::Command {
        RankingArguments::augment_args(command)
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        RankingArguments::augment_args_for_update(command)
    }
}

#[cfg(test)]
mod tests {
    use super::super::CompareArguments;
    use super::*;

    #[test]
    fn files_and_runs_stay_in_the_order_of_the_command_line() {
        for (line, expected) in [
            ("--run a.run b.parquet", "a.run* b.parquet"),
            ("b.parquet --run a.run", "b.parquet a.run*"),
            ("x --run=y --metric map z --run w v", "x y* z w* v"),
        ] {
            let line = format!("planetree compare --qrels q {line}");
            let matches = crate::command_line().try_get_matches_from(line.split(' ')).unwrap();
            let (_, of_compare) = matches.subcommand().unwrap();
            let rankings = CompareArguments::from_arg_matches(of_compare).unwrap().rankings.in_order;
            let mark = |run: bool| if run { "*" } else { "" };
            let shown: Vec<String> =
                rankings.iter().map(|each| format!("{}{}", each.text, mark(each.is_run))).collect();
            assert_eq!(shown.join(" "), expected);
        }
    }
}
