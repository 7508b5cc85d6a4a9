//! Presets: named algorithms with the settings of their papers. To add a preset, write a TOML file and list it here.

use super::source::{ConfigDocument, read_toml};
use planetree_base::error::{Error, Result};
use planetree_base::suggest;
use std::sync::LazyLock;

/// Name of the default preset.
pub(super) const DEFAULT: &str = "planet";

/// A named algorithm.
#[derive(Debug, Clone)]
pub struct TrainPreset {
    /// Name, as given to `--preset`.
    pub name: &'static str,
    /// One-line description.
    pub description: String,
    /// Citation of the paper.
    pub paper: String,
    text: &'static str,
}

const TEXTS: [(&str, &str); 34] = [
    ("planet", include_str!("presets/planet.toml")),
    ("pgbrt", include_str!("presets/pgbrt.toml")),
    ("pgbrt-grouped", include_str!("presets/pgbrt-grouped.toml")),
    ("gbrt", include_str!("presets/gbrt.toml")),
    ("sgbrt", include_str!("presets/sgbrt.toml")),
    ("ksgbrt", include_str!("presets/ksgbrt.toml")),
    ("avg-ksgbrt", include_str!("presets/avg-ksgbrt.toml")),
    ("igbrt", include_str!("presets/igbrt.toml")),
    ("bagboost", include_str!("presets/bagboost.toml")),
    ("mart", include_str!("presets/mart.toml")),
    ("mcrank", include_str!("presets/mcrank.toml")),
    ("lambdamart", include_str!("presets/lambdamart.toml")),
    ("lambdamart-paper", include_str!("presets/lambdamart-paper.toml")),
    ("lambdamart-err", include_str!("presets/lambdamart-err.toml")),
    ("ranknet", include_str!("presets/ranknet.toml")),
    ("gbrank", include_str!("presets/gbrank.toml")),
    ("xendcg", include_str!("presets/xendcg.toml")),
    ("rf-point", include_str!("presets/rf-point.toml")),
    ("rf-rand", include_str!("presets/rf-rand.toml")),
    ("rf-pair", include_str!("presets/rf-pair.toml")),
    ("rf", include_str!("presets/rf.toml")),
    ("rf-list", include_str!("presets/rf-list.toml")),
    ("rf-hybrid", include_str!("presets/rf-hybrid.toml")),
    ("linear", include_str!("presets/linear.toml")),
    ("logistic", include_str!("presets/logistic.toml")),
    ("svm", include_str!("presets/svm.toml")),
    ("ranksvm", include_str!("presets/ranksvm.toml")),
    ("coordinate-ascent", include_str!("presets/coordinate-ascent.toml")),
    ("adarank", include_str!("presets/adarank.toml")),
    ("adarank-map", include_str!("presets/adarank-map.toml")),
    ("rankboost", include_str!("presets/rankboost.toml")),
    ("ranknet-net", include_str!("presets/ranknet-net.toml")),
    ("lambdarank-net", include_str!("presets/lambdarank-net.toml")),
    ("listnet", include_str!("presets/listnet.toml")),
];

const OTHERS: [&str; 2] = ["description", "paper"];

static PRESETS: LazyLock<Vec<TrainPreset>> = LazyLock::new(|| {
    let read = |(name, text): (&'static str, &'static str)| {
        let document = read_toml(name, text, &OTHERS).expect("presets are part of the program and tested");
        let other = |key| document.others.get(key).map(|other| other.text.clone()).unwrap_or_default();
        TrainPreset { name, description: other("description"), paper: other("paper"), text }
    };
    TEXTS.into_iter().map(read).collect()
});

/// Returns all presets, the default first.
pub fn presets() -> &'static [TrainPreset] {
    &PRESETS
}

impl TrainPreset {
    /// Finds a preset by name, ignoring case.
    pub fn named(name: &str) -> Result<&'static TrainPreset> {
        presets().iter().find(|preset| preset.name.eq_ignore_ascii_case(name)).ok_or_else(|| {
            let names: Vec<&str> = presets().iter().map(|preset| preset.name).collect();
            let near = suggest::nearest(name, names.iter().copied());
            let all = format!("the presets are {}", names.join(", "));
            Error::usage(format_args!("unknown preset {name:?}"), suggest::did_you_mean(&near, &all))
        })
    }

    /// Returns the preset's settings. Settings of the user override them without an error.
    pub(super) fn document(&self) -> Result<ConfigDocument> {
        let mut document = read_toml(&format!("preset {}", self.name), self.text, &OTHERS)?;
        let of_stages = document.stages.iter_mut().flat_map(|stage| &mut stage.settings);
        document.settings.iter_mut().chain(of_stages).for_each(|setting| setting.chosen = false);
        Ok(document)
    }
}
