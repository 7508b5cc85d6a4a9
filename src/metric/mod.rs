//! How good a ranking is: one query's value, and means over queries that add up in any order.
//!
//! The convention: gain 2^label - 1, discount 1/log2(rank + 1); a query without anything relevant
//! scores 0 and counts; a depth beyond the query is the whole query; equal scores keep the order of
//! the input.

mod err;
mod gain;
mod mean;
mod ndcg;
mod prepared;
mod ranking;
mod rmse;

pub use mean::Mean;
pub use prepared::{Prepared, evaluate};
pub use ranking::Scratch;

use crate::error::{Error, Result};
use crate::suggest;
use std::fmt;
use std::str::FromStr;

/// A metric by name and depth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Metric {
    /// Root of the mean squared error.
    Rmse,
    /// NDCG at a depth; `None` for the whole list.
    Ndcg(Option<u32>),
    /// Expected reciprocal rank at a depth; `None` for the whole list.
    Err(Option<u32>),
}

/// A metric in the table of all.
struct Entry {
    name: &'static str,
    make: Make,
    higher_is_better: bool,
}

/// How a name becomes a metric.
enum Make {
    Plain(Metric),
    WithDepth(fn(Option<u32>) -> Metric),
}

/// A new metric is one file and one line here.
const ENTRIES: [Entry; 3] = [
    Entry { name: "ndcg", make: Make::WithDepth(Metric::Ndcg), higher_is_better: true },
    Entry { name: "err", make: Make::WithDepth(Metric::Err), higher_is_better: true },
    Entry { name: "rmse", make: Make::Plain(Metric::Rmse), higher_is_better: false },
];

impl Metric {
    /// How good the scores of one query are. The query's rows are given in the order of the input;
    /// the better order is the one with higher scores first.
    pub fn of_query(&self, labels: &[f32], scores: &[f64], scratch: &mut Scratch) -> f64 {
        let all = [0, u32::try_from(labels.len()).unwrap_or(u32::MAX)];
        self.prepare(labels, &all).of_query(0, labels, scores, scratch)
    }

    /// Whether more is better.
    pub fn higher_is_better(&self) -> bool {
        self.entry().higher_is_better
    }

    /// Whether `value` beats `best`.
    pub fn is_better(&self, value: f64, best: f64) -> bool {
        if self.higher_is_better() { value > best } else { value < best }
    }

    /// How deep it looks into the order of the scores: `None` if the order is all the same to it,
    /// `Some(None)` for all of it.
    fn looks_at(&self) -> Option<Option<u32>> {
        match self {
            Metric::Rmse => None,
            Metric::Ndcg(depth) | Metric::Err(depth) => Some(*depth),
        }
    }

    fn entry(&self) -> &'static Entry {
        match self {
            Metric::Ndcg(_) => &ENTRIES[0],
            Metric::Err(_) => &ENTRIES[1],
            Metric::Rmse => &ENTRIES[2],
        }
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.entry().name)?;
        match self.looks_at() {
            Some(Some(depth)) => write!(f, "@{depth}"),
            _ => Ok(()),
        }
    }
}

impl FromStr for Metric {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let text = text.trim();
        let (name, depth) = match text.split_once('@') {
            Some((name, depth)) => (name, Some(depth)),
            None => (text, None),
        };
        let Some(entry) = ENTRIES.iter().find(|entry| entry.name.eq_ignore_ascii_case(name)) else {
            let names = ENTRIES.iter().map(|entry| entry.name);
            return Err(Error::usage(
                format_args!("unknown metric {text:?}"),
                suggest::did_you_mean(&suggest::nearest(name, names), "there are ndcg@K, err@K and rmse"),
            ));
        };
        match (&entry.make, depth) {
            (Make::Plain(metric), None) => Ok(*metric),
            (Make::Plain(_), Some(_)) => Err(Error::usage(
                format_args!("metric {text:?}: {} has no depth", entry.name),
                format_args!("write {}", entry.name),
            )),
            (Make::WithDepth(make), None) => Ok(make(None)),
            (Make::WithDepth(make), Some(depth)) => match depth.parse() {
                Ok(depth) if depth > 0 => Ok(make(Some(depth))),
                _ => Err(Error::usage(
                    format_args!("metric {text:?}: {depth:?} is no depth"),
                    format_args!("write {0}@10, or {0} for the whole list", entry.name),
                )),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_printed_as_they_are_read() {
        for name in ["ndcg", "ndcg@10", "ndcg@1", "err", "err@5", "rmse"] {
            assert_eq!(name.parse::<Metric>().unwrap().to_string(), name);
            assert_eq!(name.to_uppercase().parse::<Metric>().unwrap().to_string(), name);
        }
        for entry in &ENTRIES {
            let metric: Metric = entry.name.parse().unwrap();
            assert_eq!(metric.entry().name, entry.name);
            assert_eq!(metric.higher_is_better(), entry.higher_is_better);
        }
    }

    #[test]
    fn faulty_names_say_what_was_meant() {
        for (name, problem, remedy) in [
            ("ndgc@10", "unknown metric \"ndgc@10\"", "did you mean ndcg?"),
            ("accuracy", "unknown metric \"accuracy\"", "there are ndcg@K, err@K and rmse"),
            ("", "unknown metric \"\"", "there are ndcg@K, err@K and rmse"),
            ("rmse@10", "metric \"rmse@10\": rmse has no depth", "write rmse"),
            ("ndcg@0", "metric \"ndcg@0\": \"0\" is no depth", "write ndcg@10, or ndcg for the whole list"),
            ("err@", "metric \"err@\": \"\" is no depth", "write err@10, or err for the whole list"),
            (
                "ndcg@-5",
                "metric \"ndcg@-5\": \"-5\" is no depth",
                "write ndcg@10, or ndcg for the whole list",
            ),
        ] {
            let error = name.parse::<Metric>().unwrap_err();
            assert_eq!(error.to_string(), problem);
            assert_eq!(error.remedy(), Some(remedy));
        }
    }

    #[test]
    fn better_means_lower_for_errors() {
        assert!(Metric::Rmse.is_better(0.1, 0.2) && !Metric::Rmse.is_better(0.2, 0.2));
        assert!(Metric::Ndcg(Some(10)).is_better(0.2, 0.1) && !Metric::Err(None).is_better(0.1, 0.1));
    }
}
