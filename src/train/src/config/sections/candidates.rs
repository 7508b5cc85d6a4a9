//! Parameters of candidate splits.

use super::super::keys::{Key, KeyKind};
use super::super::raw::RawParameters;
use super::super::settings::TrainSettings;
use super::super::words::{NamedEnum, word};
use super::Section;
use planetree_base::error::Result;

/// Source of candidate splits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Candidates {
    /// Boundaries of bins with about equal numbers of rows, computed once before training, as in PLANET (Panda et al.
    /// 2009).
    #[default]
    Static,
    /// Quantiles of a streaming histogram (Ben-Haim & Yom-Tov 2010), which is rebuilt for every node, as in pGBRT
    /// (Tyree et al. 2011).
    Streaming,
    /// Midpoints between all neighbouring values in a node, as in CART.
    Exact,
    /// One random value between the minimum and maximum in a node; forests only.
    Random,
}

impl NamedEnum for Candidates {
    const ALL: &'static [(&'static str, Self)] = &[
        ("static", Candidates::Static),
        ("streaming", Candidates::Streaming),
        ("exact", Candidates::Exact),
        ("random", Candidates::Random),
    ];
}

/// Parameters of candidate splits, before validation.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RawCandidates {
    /// Source of candidate splits.
    pub kind: Candidates,
    /// Maximum number of bins per feature (static, random), or of centroids per feature and node (streaming).
    pub max_bin: u32,
    /// Streaming: maximum number of groups of neighbouring values per feature; 0 keeps all values distinct.
    pub value_groups: u32,
    /// Streaming: number of workers, each with its own queries and histograms.
    pub workers: u32,
}

/// Parameters of streaming candidate splits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamingParameters {
    /// Maximum number of centroids per feature and node.
    pub max_bin: u32,
    /// Maximum number of groups of neighbouring values per feature; 0 keeps all values distinct.
    pub value_groups: u32,
    /// Number of workers, each with its own rows and histograms.
    pub workers: u32,
}

/// Parameters of candidate splits.
pub(crate) static CANDIDATES: Section = Section { keys: KEYS, check, ..Section::PLAIN };

static KEYS: &[Key] = &[
    Key {
        name: "candidates",
        aliases: &["splits"],
        kind: word!(candidates.kind),
        default: "static",
        help: "Source of candidate splits: fixed bins, centroids recomputed per node, every value, or (forests) one random value",
        ..Key::PLAIN
    },
    Key {
        name: "max_bin",
        aliases: &["max_bins", "b", "bins", "border_count"],
        kind: KeyKind::Whole {
            range: 0..=10_000,
            set: |raw, value| raw.candidates.max_bin = value as u32,
            get: |raw| raw.candidates.max_bin.into(),
        },
        default: "255",
        help: "Maximum bins per feature (static, random: 2 to 255; forests: 0 keeps all values), or centroids per feature and node (streaming: 2 to 10000)",
        ..Key::PLAIN
    },
    Key {
        name: "value_groups",
        kind: KeyKind::Whole {
            range: 0..=255,
            set: |raw, value| raw.candidates.value_groups = value as u32,
            get: |raw| raw.candidates.value_groups.into(),
        },
        default: "255",
        neutral: Some("0"),
        help: "Streaming only: maximum groups of neighbouring values per feature, 2 to 255; 0 keeps all values distinct",
        ..Key::PLAIN
    },
    Key {
        name: "workers",
        aliases: &["num_workers"],
        kind: KeyKind::Whole {
            range: 0..=100_000,
            set: |raw, value| raw.candidates.workers = value as u32,
            get: |raw| raw.candidates.workers.into(),
        },
        default: "1",
        neutral: Some("0"),
        help: "Streaming only: number of workers; each builds histograms of its queries, which are then merged",
        ..Key::PLAIN
    },
];

/// Rejects parameters that belong to other types of candidates if the user set them. Values from presets and
/// defaults are reset without an error.
fn check(settings: &TrainSettings, raw: &mut RawParameters) -> Result<()> {
    let (kind, most) = match raw.candidates.kind {
        Candidates::Static => ("static", 255),
        Candidates::Streaming => ("streaming", 10_000),
        Candidates::Exact => ("exact", 0),
        Candidates::Random => ("random", 255),
    };
    let raw = &mut raw.candidates;
    if raw.kind == Candidates::Exact {
        if raw.max_bin != 0 && settings.is_chosen("max_bin") {
            return Err(settings.fault(
                "max_bin",
                "exact candidates do not use bins",
                "remove it, or set candidates=static or candidates=streaming",
            ));
        }
        raw.max_bin = 0;
    } else if raw.kind == Candidates::Random && raw.max_bin == 0 {
        // 0 is valid here and keeps all values distinct.
    } else if !(2..=most).contains(&raw.max_bin) {
        let more = if kind == "static" && raw.max_bin > most {
            "; candidates=streaming allows up to 10000"
        } else {
            ""
        };
        return Err(settings.fault(
            "max_bin",
            &format!("{kind} candidates need a whole number from 2 to {most}"),
            &format!("set max_bin={}{more}", most.min(255)),
        ));
    }
    if raw.kind != Candidates::Streaming {
        if raw.value_groups != 0 && settings.is_chosen("value_groups") {
            return Err(settings.fault(
                "value_groups",
                &format!("{kind} candidates do not use value groups"),
                "remove it, or set candidates=streaming",
            ));
        }
        if raw.workers > 1 && settings.is_chosen("workers") {
            return Err(settings.fault(
                "workers",
                &format!("{kind} candidates do not depend on the number of workers"),
                "remove it, or set candidates=streaming",
            ));
        }
        raw.value_groups = 0;
        raw.workers = 0;
    } else if raw.workers == 0 {
        return Err(settings.fault("workers", "workers must be at least 1", "set it to 1 or more"));
    } else if raw.value_groups == 1 {
        return Err(settings.fault(
            "value_groups",
            "a single group leaves nothing to split",
            "set it to a number from 2 to 255, or to 0 to keep all values",
        ));
    }
    Ok(())
}
