//! The pipelines that the program contains, so that they run from any directory: the files of `pipelines/`.

use super::document::PipelineDocument;
use planetree_base::error::{Error, Result};
use planetree_base::suggest;

/// A pipeline that the program contains.
pub struct ShippedPipeline {
    /// Path below `pipelines/`.
    path: &'static str,
    /// The TOML text.
    pub text: &'static str,
}

macro_rules! shipped {
    ($path:literal) => {
        ShippedPipeline { path: $path, text: include_str!(concat!("../../../../pipelines/", $path)) }
    };
}

/// All pipelines that the program contains.
pub const SHIPPED: &[ShippedPipeline] = &[
    shipped!("compare_rankers.toml"),
    shipped!("lambdamart.toml"),
    shipped!("letor_cv.toml"),
    shipped!("nightly_s3.toml"),
    shipped!("papers/all_rankers.toml"),
    shipped!("papers/challenge.toml"),
    shipped!("papers/forest_comparison.toml"),
    shipped!("papers/forest_discounts.toml"),
    shipped!("papers/forest_features.toml"),
    shipped!("papers/forest_learning_curve.toml"),
    shipped!("papers/forest_levels.toml"),
    shipped!("papers/forest_min_rows.toml"),
    shipped!("papers/forest_orders.toml"),
    shipped!("papers/forest_size.toml"),
    shipped!("papers/forest_strength.toml"),
    shipped!("papers/forest_subsample.toml"),
    shipped!("papers/forest_trees.toml"),
    shipped!("papers/mart_example.toml"),
    shipped!("papers/pgbrt_bins.toml"),
    shipped!("papers/pgbrt_depth.toml"),
    shipped!("papers/pgbrt_table2.toml"),
    shipped!("papers/pgbrt_workers.toml"),
    shipped!("papers/thesis_averaged.toml"),
    shipped!("papers/thesis_classes.toml"),
    shipped!("papers/thesis_cost.toml"),
    shipped!("papers/thesis_gbrt_rf.toml"),
    shipped!("papers/thesis_igbrt.toml"),
    shipped!("papers/thesis_ksgbrt.toml"),
    shipped!("papers/thesis_missing.toml"),
    shipped!("papers/thesis_sgbrt.toml"),
    shipped!("papers/thesis_summary.toml"),
    shipped!("papers/thesis_transfer.toml"),
    shipped!("quickstart.toml"),
    shipped!("yahoo.toml"),
];

impl ShippedPipeline {
    /// Returns the name of the pipeline: its file name without the extension.
    pub fn name(&self) -> &'static str {
        let file = self.path.rsplit('/').next().unwrap_or(self.path);
        file.trim_end_matches(".toml")
    }

    /// Returns one line about the pipeline.
    pub fn description(&self) -> Result<String> {
        Ok(PipelineDocument::parse(self.path, self.text)?.description)
    }

    /// Finds a pipeline by its name.
    pub fn named(name: &str) -> Option<&'static ShippedPipeline> {
        SHIPPED.iter().find(|pipeline| pipeline.name() == name)
    }

    /// Finds a pipeline by a path that ends like its own, such as `pipelines/quickstart.toml` outside of the repository.
    pub fn at(path: &str) -> Option<&'static ShippedPipeline> {
        let file = path.rsplit('/').next().unwrap_or(path);
        ShippedPipeline::named(file.strip_suffix(".toml").unwrap_or(file))
    }

    /// Returns whether the pipeline re-obtains the results of a paper.
    pub fn is_of_paper(&self) -> bool {
        self.path.starts_with("papers/")
    }

    /// Finds a pipeline by its name; the error suggests similar names.
    pub fn find(name: &str) -> Result<&'static ShippedPipeline> {
        Self::named(name).ok_or_else(|| {
            let near = suggest::nearest(name, SHIPPED.iter().map(ShippedPipeline::name));
            let remedy = suggest::did_you_mean(&near, "`planetree run --list` lists the pipelines");
            Error::usage(format_args!("unknown pipeline {name:?}"), remedy)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::path::Path;

    #[test]
    fn every_pipeline_of_the_folder_is_shipped() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../pipelines");
        let mut found = BTreeSet::new();
        for (prefix, folder) in [("", folder.clone()), ("papers/", folder.join("papers"))] {
            for entry in std::fs::read_dir(folder).unwrap() {
                let name = entry.unwrap().file_name().into_string().unwrap();
                if name.ends_with(".toml") {
                    found.insert(format!("{prefix}{name}"));
                }
            }
        }
        let listed: BTreeSet<String> = SHIPPED.iter().map(|pipeline| pipeline.path.to_owned()).collect();
        assert_eq!(listed, found);
        let names: BTreeSet<&str> = SHIPPED.iter().map(ShippedPipeline::name).collect();
        assert_eq!(names.len(), SHIPPED.len());
        for pipeline in SHIPPED {
            assert!(!pipeline.description().unwrap().is_empty(), "{}", pipeline.path);
        }
    }
}
