//! Defines the options for rankings that need no model.

use super::options::split_name;
use clap::Args;
use planetree_base::error::{Error, Result};
use planetree_judge::evaluate::Baseline;

/// Rankings of a dataset that need no model.
#[derive(Debug, Args)]
pub(crate) struct BaselineOptions {
    /// Rank the rows of --data by a feature, such as f110, or -f110 if small values are best; documents without a value
    /// come last; may be repeated
    #[arg(long, value_name = "[NAME=][-]FEATURE", requires = "data", allow_hyphen_values = true)]
    feature: Vec<String>,

    /// Rank the rows of --data in random order, drawn with --seed (--fold-seed of cv), and also compute the exact
    /// expectation over all orders (random-expected)
    #[arg(long, requires = "data")]
    random: bool,
}

/// Returns the feature of two rankings with the same name, which can be renamed, unlike random orders.
fn feature_of<'b>(one: &'b Baseline, other: &'b Baseline) -> &'b Baseline {
    if matches!(one, Baseline::Feature(_)) { one } else { other }
}

impl BaselineOptions {
    /// Returns the baselines with their names, all of which differ. `seed` is the seed of random orders.
    pub(crate) fn named(&self, seed: u64) -> Result<Vec<(String, Baseline)>> {
        let of_feature = |text: &String| {
            let (name, feature) = split_name(text);
            (name.unwrap_or(feature).to_owned(), Baseline::Feature(feature.to_owned()))
        };
        let mut all: Vec<(String, Baseline)> = self.feature.iter().map(of_feature).collect();
        if self.random {
            let random = [Baseline::Random { seed }, Baseline::Expectation];
            all.extend(random.map(|baseline| (baseline.to_string(), baseline)));
        }
        for (number, (name, baseline)) in all.iter().enumerate() {
            let Some((_, other)) = all[..number].iter().find(|(other, _)| other == name) else { continue };
            return Err(match baseline == other {
                true => Error::usage(format_args!("--feature {baseline} is given twice"), "pass it once"),
                false => Error::usage(
                    format_args!("two rankings have the same name: {name}"),
                    format_args!("choose another name: --feature NAME={}", feature_of(baseline, other)),
                ),
            });
        }
        Ok(all)
    }
}
