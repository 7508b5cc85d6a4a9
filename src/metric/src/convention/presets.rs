//! Defines presets for the conventions of other tools and of published results. A preset is written as the switches
//! that differ from the default.

use super::Convention;
use planetree_base::error::{Error, Result};
use planetree_base::suggest;

/// Name of the default preset.
pub(super) const DEFAULT: &str = "planetree";

/// A named convention.
#[derive(Debug)]
pub struct ConventionPreset {
    /// Name; parsing ignores case.
    pub name: &'static str,
    /// The switches that differ from the default, separated by commas.
    pub switches: &'static str,
    /// One-line description for `--help`.
    pub help: &'static str,
}

/// All presets, the default first. A new preset needs only an entry here.
const PRESETS: [ConventionPreset; 15] = [
    ConventionPreset {
        name: DEFAULT,
        switches: "",
        help: "default: exp2 gains, log2 discounts, 0 for empty queries",
    },
    ConventionPreset {
        name: "letor4",
        switches: "discount=letor,short=zero",
        help: "LETOR's Eval-Score-4.0: no discount at rank 2, NDCG@K is 0 for shorter queries",
    },
    ConventionPreset {
        name: "mslr",
        switches: "discount=letor,short=zero,relevant=2",
        help: "as letor4, but relevant from label 2: MSLR-WEB",
    },
    ConventionPreset {
        name: "yahoo",
        switches: "depth=10,empty=1",
        help: "the Yahoo challenge: NDCG@10, 1 for empty queries, ERR on the whole list",
    },
    ConventionPreset {
        name: "mohan",
        switches: "depth=10,empty=0.5",
        help: "Mohan's thesis of 2010: NDCG@10, 0.5 for empty queries, ERR on the whole list",
    },
    ConventionPreset {
        name: "mohan-cost",
        switches: "short=pad,relevant=3,auc=pooled",
        help: "Mohan's thesis, chapter 6: relevant from label 3, P over K, AUC of all documents pooled",
    },
    ConventionPreset {
        name: "ranklib",
        switches: "depth=10,binary_depth=10,relevant=above:0,map_depth=all,err_depth=10",
        help: "RankLib: depth 10 unless named, MAP on the whole list",
    },
    ConventionPreset {
        name: "lightgbm",
        switches: "empty=1,relevant=above:0.5,map_normaliser=depth",
        help: "LightGBM: 1 for empty queries, MAP over min(relevant, K)",
    },
    ConventionPreset {
        name: "xgboost",
        switches: "depth=32,binary_depth=32,empty=1,map_normaliser=depth,scores=float32",
        help: "XGBoost: as LightGBM, depth 32 unless named; ndcg@K- is xgboost,empty=0",
    },
    ConventionPreset {
        name: "trec",
        switches: "gain=positive,short=pad,ties=docid,ideal=judgments,scores=float32",
        help: "trec_eval, pytrec_eval, ir_measures: linear gains, ties by document id, P over K",
    },
    ConventionPreset {
        name: "ranx",
        switches: "gain=linear,short=pad,ideal=judgments",
        help: "ranx: as trec, but ties in input order",
    },
    ConventionPreset {
        name: "catboost",
        switches: "gain=linear,empty=1,map_empty=0,ties=worst,relevant=above:0.5,map_normaliser=depth,err_grade=label",
        help: "CatBoost: linear gains, 1 for empty queries, worst order of ties",
    },
    ConventionPreset {
        name: "ydf",
        switches: "ties=average,binary_ties=best,relevant=above:0.5,map_normaliser=found",
        help: "YDF: mean over all orders of ties, best order for MRR and MAP",
    },
    ConventionPreset {
        name: "sklearn",
        switches: "gain=linear,ties=average,binary_ties=last",
        help: "scikit-learn: linear gains, mean over all orders of ties",
    },
    ConventionPreset {
        name: "gdeval",
        switches: "short=pad,ties=docid,ideal=judgments",
        help: "TREC's gdeval: exp2 gains, ERR of grade 4, ties by document id",
    },
];

/// Returns all presets, the default first.
pub(crate) fn presets() -> &'static [ConventionPreset] {
    &PRESETS
}

impl ConventionPreset {
    /// Returns the preset with this name, or an error that suggests the most similar name.
    pub fn named(name: &str) -> Result<&'static ConventionPreset> {
        let found = PRESETS.iter().find(|preset| preset.name.eq_ignore_ascii_case(name));
        found.ok_or_else(|| {
            let names: Vec<&str> = PRESETS.iter().map(|preset| preset.name).collect();
            let mut nearest = suggest::nearest(name, names.iter().copied());
            if nearest.is_empty() {
                let written = name.to_ascii_lowercase();
                let is_part = |other: &&str| written.starts_with(*other) || other.starts_with(&written);
                nearest = names.iter().copied().filter(is_part).collect();
            }
            Error::usage(
                format_args!("unknown convention {name:?}"),
                suggest::did_you_mean(&nearest, &format!("the conventions are {}", names.join(", "))),
            )
        })
    }

    /// Builds the convention that the preset stands for.
    pub fn convention(&self) -> Result<Convention> {
        let mut convention = Convention { base: self.name, ..Convention::default() };
        for setting in self.switches.split(',').filter(|setting| !setting.is_empty()) {
            convention.set(self.name, setting)?;
        }
        Ok(convention)
    }
}
