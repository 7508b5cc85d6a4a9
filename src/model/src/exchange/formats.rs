//! Lists all formats for the import and export of models.

use super::format::{ModelExport, ModelFormat, ModelImport, ModelKind};
use super::support::PartSupport;
use super::{
    LINEAR, TREES, catboost, elastic, json, lightgbm, ltr_plugin, onnx, pmml, ranklib, solr, treelite,
    upload, vespa, xgboost,
};
use planetree_base::storage::FileFormat;

const fn kind(name: &'static str, parts: PartSupport) -> ModelKind {
    ModelKind { name, parts }
}

/// The kinds of a format that has trees only.
const TREE_KINDS: &[ModelKind] = &[kind(TREES, PartSupport::TreeSums)];
/// The kinds of the learning-to-rank plugins.
const PLUGIN_KINDS: &[ModelKind] = &[
    kind(ltr_plugin::DUMP, PartSupport::TreeSums),
    kind(ltr_plugin::RAW, PartSupport::TreeSums),
    kind(ltr_plugin::RANKLIB, PartSupport::ZeroMissingTreeSums),
    kind(LINEAR, PartSupport::LinearSums),
];
/// The kinds of formats with a choice of precision.
const PRECISIONS: &[ModelKind] =
    &[kind(onnx::FLOAT, PartSupport::TreeSums), kind(onnx::DOUBLE, PartSupport::TreeSums)];

/// The learning-to-rank plugins of Elasticsearch and OpenSearch share the format.
const fn plugin(name: &'static str, description: &'static str, noun: &'static str) -> ModelFormat {
    ModelFormat {
        name,
        description,
        noun,
        files: &[FileFormat::Json, FileFormat::Text],
        export: Some(ModelExport {
            kinds: PLUGIN_KINDS,
            opsets: &[],
            write: ltr_plugin::export,
            is_ours: ltr_plugin::is_ours,
            kind_of: ltr_plugin::kind,
            served: ltr_plugin::served,
            has_categories: false,
            upload: Some(upload::plugin),
        }),
        import: None,
    }
}

/// All formats for the import and export of models.
pub static MODEL_FORMATS: [ModelFormat; 13] = [
    ModelFormat {
        name: "lightgbm",
        description: "LightGBM's text format, as written by its save_model",
        noun: "a LightGBM model",
        files: &[FileFormat::Text],
        export: Some(ModelExport {
            kinds: TREE_KINDS,
            opsets: &[],
            write: lightgbm::export,
            is_ours: lightgbm::is_ours,
            kind_of: |_| TREES,
            served: lightgbm::served,
            has_categories: true,
            upload: None,
        }),
        import: Some(ModelImport { is_likely: lightgbm::is_likely, read: lightgbm::import }),
    },
    ModelFormat {
        name: "xgboost",
        description: "XGBoost's JSON format, as written by its save_model",
        noun: "an XGBoost model",
        files: &[FileFormat::Json, FileFormat::Text],
        export: Some(ModelExport {
            kinds: TREE_KINDS,
            opsets: &[],
            write: xgboost::export,
            is_ours: xgboost::is_ours,
            kind_of: |_| TREES,
            served: xgboost::served,
            has_categories: true,
            upload: None,
        }),
        import: Some(ModelImport { is_likely: xgboost::is_likely, read: xgboost::import }),
    },
    ModelFormat {
        name: "json",
        description: "the complete model as JSON",
        noun: "a model as JSON",
        files: &[FileFormat::Json, FileFormat::Text],
        export: Some(ModelExport {
            kinds: &[kind(TREES, PartSupport::AllTrees)],
            opsets: &[],
            write: json::export,
            is_ours: json::is_likely,
            kind_of: |_| TREES,
            served: json::served,
            has_categories: true,
            upload: None,
        }),
        import: Some(ModelImport { is_likely: json::is_likely, read: json::import }),
    },
    ModelFormat {
        name: "ranklib",
        description: "RankLib's text format: trees or weights",
        noun: "a RankLib model",
        files: &[FileFormat::Text],
        export: Some(ModelExport {
            kinds: &[kind(TREES, PartSupport::ZeroMissingTreeSums), kind(LINEAR, PartSupport::LinearSums)],
            opsets: &[],
            write: ranklib::export,
            is_ours: ranklib::is_ours,
            kind_of: ranklib::kind,
            served: ranklib::served,
            has_categories: false,
            upload: None,
        }),
        import: Some(ModelImport { is_likely: ranklib::is_likely, read: ranklib::import }),
    },
    ModelFormat {
        name: "solr",
        description: "Solr's MultipleAdditiveTreesModel or LinearModel",
        noun: "a model of Solr",
        files: &[FileFormat::Json, FileFormat::Text],
        export: Some(ModelExport {
            kinds: &[kind(TREES, PartSupport::TreeSums), kind(LINEAR, PartSupport::LinearSums)],
            opsets: &[],
            write: solr::export,
            is_ours: solr::is_ours,
            kind_of: solr::kind,
            served: solr::served,
            has_categories: false,
            upload: Some(upload::solr),
        }),
        import: None,
    },
    plugin(
        "elasticsearch-ltr",
        "the learning-to-rank plugin of Elasticsearch",
        "a model of the learning-to-rank plugin",
    ),
    plugin(
        "opensearch-ltr",
        "the learning-to-rank plugin of OpenSearch",
        "a model of the learning-to-rank plugin",
    ),
    ModelFormat {
        name: "elastic",
        description: "Elasticsearch's own learning to rank: a trained model",
        noun: "a trained model of Elasticsearch",
        files: &[FileFormat::Json, FileFormat::Text],
        export: Some(ModelExport {
            kinds: TREE_KINDS,
            opsets: &[],
            write: elastic::export,
            is_ours: elastic::is_ours,
            kind_of: |_| TREES,
            served: elastic::served,
            has_categories: false,
            upload: Some(upload::elastic),
        }),
        import: None,
    },
    ModelFormat {
        name: "vespa",
        description: "the files of Vespa's lightgbm() and xgboost()",
        noun: "a model of Vespa",
        files: &[FileFormat::Json, FileFormat::Text],
        export: Some(ModelExport {
            kinds: &[
                kind(vespa::LIGHTGBM, PartSupport::TreeSums),
                kind(vespa::XGBOOST, PartSupport::TreeSums),
            ],
            opsets: &[],
            write: vespa::export,
            is_ours: vespa::is_ours,
            kind_of: vespa::kind,
            served: vespa::served,
            has_categories: false,
            upload: None,
        }),
        import: None,
    },
    ModelFormat {
        name: "onnx",
        description: "ONNX: TreeEnsemble, or TreeEnsembleRegressor with --opset 3",
        noun: "an ONNX model",
        files: &[],
        export: Some(ModelExport {
            kinds: PRECISIONS,
            opsets: &onnx::OPSETS,
            write: onnx::export,
            is_ours: onnx::is_ours,
            kind_of: onnx::kind,
            served: onnx::served,
            has_categories: false,
            upload: None,
        }),
        import: Some(ModelImport { is_likely: onnx::is_likely, read: onnx::import }),
    },
    ModelFormat {
        name: "treelite",
        description: "Treelite's byte stream of version 4",
        noun: "a Treelite model",
        files: &[],
        export: Some(ModelExport {
            kinds: PRECISIONS,
            opsets: &[],
            write: treelite::export,
            is_ours: treelite::is_ours,
            kind_of: treelite::kind,
            served: treelite::served,
            has_categories: false,
            upload: None,
        }),
        import: None,
    },
    ModelFormat {
        name: "pmml",
        description: "PMML 4.4: trees or weights",
        noun: "a PMML model",
        files: &[FileFormat::Text],
        export: Some(ModelExport {
            kinds: &[kind(TREES, PartSupport::TreeSums), kind(LINEAR, PartSupport::LinearSums)],
            opsets: &[],
            write: pmml::export,
            is_ours: pmml::is_ours,
            kind_of: pmml::kind,
            served: pmml::served,
            has_categories: false,
            upload: None,
        }),
        import: None,
    },
    ModelFormat {
        name: "catboost",
        description: "CatBoost's JSON format, as written by its save_model",
        noun: "a CatBoost model",
        files: &[],
        export: None,
        import: Some(ModelImport { is_likely: catboost::is_likely, read: catboost::import }),
    },
];
