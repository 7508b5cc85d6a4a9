//! Tests that exported models have the same scores after they are imported again, and that invalid files are rejected.

use super::import::unknown;
use super::*;
use crate::explain::Explainer;
use crate::model::{Branch, Combine, Model, ModelFeature, Normalisation, Part};
use crate::predict::Scorer;
use crate::predict::tests::scorer::{RandomModel, random_model, random_rows};
use planetree_base::error::Result;
use proptest::prelude::*;

const MODEL_NAMES: NameSource = NameSource::Model { first: 1 };

fn named(name: &str) -> &'static ModelFormat {
    ModelFormat::named(name).unwrap()
}

/// Creates a random model that other programs can represent. Its fill values and thresholds are finite.
pub(super) fn portable(shape: &RandomModel) -> Model {
    let mut model = random_model(shape);
    for (index, feature) in model.features.iter_mut().enumerate() {
        feature.name = format!("f{}", index + 1);
        feature.fill = feature.fill.map(|fill| if fill.is_finite() { fill } else { 0.0 });
    }
    for tree in &mut model.only_trees_mut().unwrap().trees {
        for node in (0..tree.nodes.len()).rev() {
            if let Some(split) = &mut tree.nodes[node].split {
                split.threshold = if split.threshold.is_finite() { split.threshold } else { 0.5 };
                // The export to XGBoost writes the next larger float, but the largest float has no successor.
                split.threshold = split.threshold.min(1e30);
                let children: Vec<u32> = split.children().collect();
                tree.nodes[node].cover = children.iter().map(|child| tree.nodes[*child as usize].cover).sum();
            }
        }
    }
    model
}

fn scores(model: &Model, rows: &[f32]) -> Vec<f64> {
    let mut scores = vec![0.0; rows.len() / model.features.len()];
    Scorer::new(model).unwrap().score(rows, &mut scores);
    scores
}

fn contributions(model: &Model, rows: &[f32]) -> Vec<f64> {
    let mut all = vec![0.0; rows.len()];
    Explainer::new(model).unwrap().explain_rows(rows, &mut all);
    all
}

/// Exports a model without further wishes.
fn export(format: &ModelFormat, model: &Model) -> Result<ExportedModel> {
    format.export(model, &ExportRequest::default())
}

fn text(format: &ModelFormat, model: &Model) -> String {
    String::from_utf8(export(format, model).unwrap().bytes).unwrap()
}

/// The formats with an export.
pub(super) fn exported() -> impl Iterator<Item = (&'static ModelFormat, &'static ModelExport)> {
    MODEL_FORMATS.iter().filter_map(|format| Some((format, format.export.as_ref()?)))
}

/// The text formats with an export and an import.
fn both_ways() -> impl Iterator<Item = &'static ModelFormat> {
    exported().map(|(format, _)| format).filter(|format| format.import.is_some() && !format.files.is_empty())
}

fn read(format: &ModelFormat, bytes: &[u8], names: &NameSource) -> Result<ImportedModel, ImportError> {
    (format.import.as_ref().unwrap().read)(bytes, names)
}

/// Exports and imports a model, and compares scores and explanations.
fn check(shape: &RandomModel) {
    check_model(&portable(shape), shape);
}

/// Returns whether a split has a branch for missing values that no training row took.
fn has_untaken_branches(model: &Model) -> bool {
    let trees =
        model.parts.iter().filter_map(|part| part.family.trees()).flat_map(|ensemble| &ensemble.trees);
    let mut splits = trees.flat_map(|tree| &tree.nodes).filter_map(|node| node.split.as_ref());
    splits.any(|split| split.missing == Branch::Middle && split.middle.is_none())
}

fn check_model(model: &Model, shape: &RandomModel) {
    let rows: Vec<f32> = random_rows(shape, 60)
        .into_iter()
        .map(|value| if value.is_infinite() { 3.0 } else { value })
        .collect();
    let truth = (scores(model, &rows), contributions(model, &rows));
    for (format, tolerance) in [("lightgbm", 1e-12), ("xgboost", 2e-6), ("json", 0.0)] {
        let format = named(format);
        let ExportedModel { bytes, notes, losses } = export(format, model).unwrap();
        assert_eq!((notes, losses), (vec![], vec![]));
        assert!(format.is_likely(&bytes));
        let imported = read(format, &bytes, &MODEL_NAMES).unwrap();
        assert_eq!(imported.losses, Vec::<String>::new());
        assert_eq!(imported.model.fault(), None);
        let found = (scores(&imported.model, &rows), contributions(&imported.model, &rows));
        let near = |one: &[f64], other: &[f64], tolerance: f64, what: &str| {
            let scale = 1.0 + one.iter().fold(0.0, |most: f64, value| most.max(value.abs()));
            for (one, other) in one.iter().zip(other) {
                assert!(
                    (one - other).abs() <= tolerance * scale,
                    "{} {what}: {one} is not {other}: {shape:?}",
                    format.name
                );
            }
        };
        near(&truth.0, &found.0, tolerance, "scores");
        // LightGBM's explanations need rows in every leaf, so a leaf without cover counts as one row of 2^30.
        let is_counted = format.name == "lightgbm" && has_untaken_branches(model);
        let tolerance = if is_counted { 1e-6 } else { tolerance };
        near(&truth.1, &found.1, tolerance, "contributions");
        if format.name == "json" {
            assert_eq!(imported.model, *model);
        }
        let is_sum = model.only_trees().is_some_and(|ensemble| ensemble.combine == Combine::Sum);
        if format.name == "lightgbm" && is_sum {
            assert_eq!(found.0, truth.0, "to the bit");
        }
    }
}

proptest! {
    #[test]
    fn any_model_has_the_same_scores_after_export_and_import(
        seed in any::<u64>(), bag in any::<bool>(), features in 1..8usize, trees in 0..6usize, leaves in 1..40usize,
    ) {
        let combine = if bag { Combine::Mean } else { Combine::Sum };
        check(&RandomModel { seed, combine, features, trees, max_leaves: leaves, numbers: 30 });
    }
}

/// An export of many trees was not recognised by its first bytes, and could not be replaced.
#[test]
fn exports_of_many_trees_are_recognised_as_our_own() {
    let combine = Combine::Sum;
    let model =
        portable(&RandomModel { seed: 5, combine, features: 3, trees: 600, max_leaves: 3, numbers: 20 });
    for (format, exporter) in exported() {
        let Ok(ExportedModel { bytes, .. }) = export(format, &model) else { continue };
        assert!((exporter.is_ours)(&bytes), "{}", format.name);
    }
}

fn example() -> Model {
    let shape =
        RandomModel { seed: 3, combine: Combine::Sum, features: 3, trees: 3, max_leaves: 6, numbers: 20 };
    portable(&shape)
}

/// Makes every missing value 0, so that RankLib, in which absent values are 0, can represent the model.
fn zero_filled(mut model: Model) -> Model {
    model.features.iter_mut().for_each(|feature| feature.fill = Some(0.0));
    model
}

#[test]
fn what_a_format_cannot_express_is_a_loss() {
    let mut model = zero_filled(example());
    model.only_trees_mut().unwrap().base_feature = Some(1);
    for (format, _) in exported() {
        // Solr's loss of tiny thresholds has a test of its own.
        let mut losses = export(format, &model).unwrap().losses;
        losses.retain(|loss| !loss.contains("written exactly"));
        assert_eq!(losses.len(), usize::from(format.name != "json"), "{}: {losses:?}", format.name);
        assert!(losses.iter().all(|loss| loss.contains("feature f2")), "{}: {losses:?}", format.name);
    }
}

/// Creates a model with a boosted part and a bagged part, with weights and an intercept.
fn two_parts() -> (Model, RandomModel) {
    let shape =
        RandomModel { seed: 5, combine: Combine::Sum, features: 4, trees: 3, max_leaves: 9, numbers: 20 };
    let mut model = portable(&shape);
    model.parts.extend(portable(&RandomModel { seed: 6, combine: Combine::Mean, ..shape.clone() }).parts);
    model.parts[1].name = "second".to_owned();
    model.intercept = -0.25;
    (model.parts[0].weight, model.parts[1].weight) = (0.7, -2.0);
    (model, shape)
}

#[test]
fn a_weighted_sum_of_tree_parts_becomes_one_ensemble() {
    let (mut model, shape) = two_parts();
    // Both parts use the fill values of the first random model.
    check_model(&model, &shape);
    // A single mean with a weight stays a mean.
    model.parts.remove(0);
    check_model(&model, &shape);
    let exported = text(named("lightgbm"), &model);
    assert!(exported.contains("average_output\n"), "{exported}");
}

#[test]
fn parts_that_a_format_cannot_carry_are_refused_by_name() {
    for corrupt in [(|part| part.normalisation = Normalisation::Rank) as fn(&mut Part), |part| {
        part.family.trees_mut().unwrap().combine = Combine::Wins
    }] {
        let mut model = zero_filled(two_parts().0);
        corrupt(&mut model.parts[1]);
        for (format, support) in exported() {
            let exported = export(format, &model);
            if support.kinds[0].parts == PartSupport::AllTrees {
                let bytes = exported.unwrap().bytes;
                assert_eq!(read(format, &bytes, &MODEL_NAMES).unwrap().model, model);
                continue;
            }
            let error = exported.unwrap_err();
            assert!(error.to_string().contains("part 1 (second) is "), "{error}");
            assert!(error.remedy().unwrap().contains("--format json"), "{error}");
        }
    }
}

#[test]
fn json_of_version_1_is_read() {
    let text = r#"{"planetree_model":1,"ensemble":"bag","base_score":0.5,"base_feature":1,
        "features":[{"name":"a","fill":null},{"name":"b","fill":2.0}],
        "trees":[{"group":0,"nodes":[{"depth":0,"value":3.0,"cover":1.0}]}],"configuration":"","data":[],"rounds":1}"#;
    let model = read(named("json"), text.as_bytes(), &MODEL_NAMES).unwrap().model;
    assert_eq!(model.fault(), None);
    assert_eq!(scores(&model, &[0.0, 1.0, 0.0, f32::NAN]), [4.5, 5.5]);
}

#[test]
fn only_files_exported_by_planetree_are_recognised() {
    for (format, functions) in exported() {
        for kind in functions.kinds.iter().filter(|kind| kind.parts != PartSupport::LinearSums) {
            let request = ExportRequest { kind: Some(kind.name.to_owned()), ..ExportRequest::default() };
            let bytes = format.export(&zero_filled(example()), &request).unwrap().bytes;
            let ours: Vec<&str> = exported()
                .filter(|(_, other)| (other.is_ours)(&bytes))
                .map(|(other, _)| other.name)
                .collect();
            // The plugins read files of other programs, too, and both plugins have one format.
            assert!(!ours.is_empty(), "{} {}", format.name, kind.name);
            assert!(
                ours.len() == 1 || format.name.ends_with("-ltr"),
                "{} {}: {ours:?}",
                format.name,
                kind.name
            );
        }
    }
    // These files have the form that LightGBM and XGBoost write themselves.
    let lightgbm =
        "tree\nversion=v4\n\nparameters:\n[boosting: gbdt]\n\nend of parameters\n\npandas_categorical:null\n";
    let xgboost = r#"{"learner":{"attributes":{},"feature_names":[]},"version":[3,2,0]}"#;
    let again = text(named("xgboost"), &example());
    for text in [lightgbm, xgboost, again.trim_end(), "", "notes\n"] {
        assert!(exported().all(|(_, functions)| !(functions.is_ours)(text.as_bytes())), "{text}");
    }
}

#[test]
fn unsupported_characters_are_replaced_and_columns_are_numbered() {
    let feature = |name: &str| ModelFeature::new(name);
    let mut model = example();
    model.features = vec![feature("a b"), feature("a_b"), feature("c[1]")];
    let notes = export(named("lightgbm"), &model).unwrap().notes;
    let text = |format: &str, model: &Model| text(named(format), model);
    let found = text("lightgbm", &model);
    assert!(found.contains("feature_names=a_b_2 a_b c_1_\n"), "{found}");
    assert_eq!(notes.len(), 1);
    assert!(notes[0].ends_with("\"a b\" as a_b_2, \"c[1]\" as c_1_"), "{notes:?}");
    let found = text("xgboost", &model);
    assert!(found.contains(r#""feature_names":["a b","a_b","c_1_"]"#), "{found}");
    // XGBoost numbers features from 0, so without names its dumps would show the feature `f2` as `f1`.
    let found = text("xgboost", &example());
    assert!(
        found.contains(r#""feature_names":["f1","f2","f3"],"feature_types":["float","float","float"]"#),
        "{found}"
    );
    let imported = read(named("xgboost"), found.as_bytes(), &NameSource::Model { first: 0 }).unwrap();
    assert_eq!(imported.model.features[1].name, "f2");
    // Unnamed columns are numbered from 0 in LightGBM, and from `first` in planetree.
    let unnamed = text("lightgbm", &example()).replace("f1 f2 f3", "Column_0 Column_1 Column_2");
    let names = |first| -> Vec<String> {
        let imported = read(named("lightgbm"), unnamed.as_bytes(), &NameSource::Model { first }).unwrap();
        imported.model.features.into_iter().map(|feature| feature.name).collect()
    };
    assert_eq!(
        (names(1), names(0)),
        (vec!["f1".into(), "f2".into(), "f3".into()], vec!["f0".into(), "f1".into(), "f2".into()])
    );
    let given = |count: usize| NameSource::Given((0..count).map(|index| format!("n{index}")).collect());
    for format in both_ways() {
        let text = text(format.name, &zero_filled(example()));
        let imported = read(format, text.as_bytes(), &given(3)).unwrap();
        assert_eq!(imported.model.features[2].name, "n2");
        // RankLib's text does not tell how many features there are.
        if format.name != "ranklib" {
            let fault = read(format, text.as_bytes(), &given(4)).unwrap_err();
            assert_eq!(fault.problem, "the model has 3 features, but there are 4 names");
        }
    }
}

/// Returns the problem that is reported for a file, or an empty string if the file is valid.
fn problem(format: &str, text: &str) -> String {
    let format = named(format);
    match read(format, text.as_bytes(), &MODEL_NAMES) {
        Ok(imported) => imported.model.fault().unwrap_or_default(),
        Err(fault) => {
            assert!(!fault.remedy.is_empty());
            fault.problem
        }
    }
}

#[test]
fn truncated_and_unsupported_files_are_rejected() {
    for format in both_ways() {
        let text = text(format, &zero_filled(example()));
        assert_eq!(problem(format.name, &text), "");
        let whole = match format.name {
            "lightgbm" => text.find("end of trees").unwrap(),
            "ranklib" => text.find("</ensemble>").unwrap(),
            _ => text.len() - 2,
        };
        for end in (0..whole).step_by(7) {
            let Some(start) = text.get(..end) else { continue };
            assert_ne!(problem(format.name, start), "", "{} of {end} bytes", format.name);
        }
        let found = problem(format.name, &text[..whole * 3 / 4]);
        assert!(found.starts_with("truncated: "), "{found}");
        for other in MODEL_FORMATS.iter().filter(|other| other.import.is_some() && other.name != format.name)
        {
            let found = problem(other.name, &text);
            assert!(found.starts_with("not a") || found.starts_with("truncated"), "{found}");
        }
    }
    for (format, old, new, expected) in [
        (
            "lightgbm",
            "version=v4",
            "version=v9",
            "written by a newer LightGBM (format v9; up to v4 is supported)",
        ),
        ("lightgbm", "num_class=1", "num_class=3", "the model has one score per class"),
        ("lightgbm", "num_cat=0", "num_cat=1", "tree 0: not a LightGBM model: cat_boundaries is missing"),
        ("lightgbm", "is_linear=0", "is_linear=1", "tree 0: linear leaves are not supported"),
        ("lightgbm", "left_child=", "left_child=0 ", "tree 0: not a LightGBM model: left_child has"),
        ("lightgbm", "threshold=", "threshold=x", "tree 0: not a LightGBM model: threshold has \"x"),
        (
            "lightgbm",
            "max_feature_idx=2",
            "max_feature_idx=x",
            "not a LightGBM model: max_feature_idx is \"x\", not a number",
        ),
        ("xgboost", "[2,0,0]", "[7,0,0]", "written by a newer XGBoost (version 7"),
        ("xgboost", "\"num_class\":\"0\"", "\"num_class\":\"5\"", "the model has one score per class"),
        (
            "xgboost",
            "\"name\":\"gbtree\"",
            "\"name\":\"gblinear\"",
            "linear models (gblinear) are not supported",
        ),
        (
            "xgboost",
            "\"split_type\":[0",
            "\"split_type\":[1",
            "tree 0: not an XGBoost model: node 0 splits on categories, but has none",
        ),
        (
            "xgboost",
            "\"left_children\":[1",
            "\"left_children\":[0",
            "tree 0: not an XGBoost model: the nodes do not form a tree",
        ),
        (
            "xgboost",
            "\"left_children\":[1",
            "\"left_children\":[99",
            "tree 0: not an XGBoost model: node 99 does not exist",
        ),
        ("xgboost", "reg:squarederror", "my:own", "unsupported objective \"my:own\""),
        ("json", "\"planetree_model\":2", "\"planetree_model\":9", "written by a newer planetree"),
        (
            "json",
            "\"kind\":\"trees\"",
            "\"kind\":\"oracle\"",
            "part 0 (trees) is of an unknown kind: \"oracle\"",
        ),
        ("json", "\"missing\":\"", "\"missing\":\"x", "unknown branch for missing values: \"x"),
    ] {
        let text = text(named(format), &example());
        assert!(text.contains(old), "{format}: {old}\n{text}");
        let found = problem(format, &text.replace(old, new));
        assert!(found.starts_with(expected), "{found} instead of {expected}");
    }
}

#[test]
fn formats_are_detected_from_the_content() {
    for (format, _) in exported().filter(|(format, _)| format.import.is_some()) {
        let bytes = export(format, &zero_filled(example())).unwrap().bytes;
        let likely: Vec<_> = MODEL_FORMATS.iter().filter(|other| other.is_likely(&bytes)).collect();
        assert_eq!(likely.len(), 1, "{}", format.name);
        assert_eq!(likely[0].name, format.name);
    }
    for (bytes, expected) in [
        (&b""[..], "the file is empty"),
        (b"PAR1....", "this is a Parquet file"),
        (b"{L\0\0\0\0\0\0\0\x07learner{", "XGBoost's binary formats are not supported"),
        (b"[{\"nodeid\": 0}]", "not a model in a supported format"),
    ] {
        assert!(MODEL_FORMATS.iter().all(|format| !format.is_likely(bytes)));
        assert!(unknown(bytes).problem.starts_with(expected), "{:?}", unknown(bytes));
    }
}

#[test]
fn categories_of_a_frame_are_imported_only_if_no_other_feature_may_have_them() {
    let categories = |infos: &str, lists: &str| -> Option<Vec<usize>> {
        let text = format!(
            "tree\nversion=v4\nnum_class=1\nnum_tree_per_iteration=1\nmax_feature_idx=2\nobjective=regression\n\
             feature_names=a b c\nfeature_infos={infos}\n\nTree=0\nnum_leaves=1\nnum_cat=0\nleaf_value=1\n\n\
             end of trees\n\npandas_categorical:{lists}\n"
        );
        let imported = read(named("lightgbm"), text.as_bytes(), &MODEL_NAMES).unwrap();
        let words = imported.model.features.iter().map(|feature| feature.words.len());
        imported.notes.is_empty().then(|| words.collect())
    };
    let three = r#"[["x","y","z"]]"#;
    assert_eq!(categories("[0.1:0.9] -1:0:2:1 [0.5:2]", three), Some(vec![0, 3, 0]));
    // The frame may have had an ordered category, or one that was not chosen, and a categorical feature of integers.
    assert_eq!(categories("[0:2] -1:0:2:1 [0.5:2]", three), None);
    assert_eq!(categories("[0.5:2] 0:1 [1:2]", three), None);
    // The column of type category may be the one that LightGBM does not use.
    assert_eq!(categories("0:1:2 none [0.5:2]", three), None);
    assert_eq!(categories("[-1:2] -1:0:2:1 [0:3]", three), Some(vec![0, 3, 0]));
    assert_eq!(categories("[0:2] 0:1 0:1:2", r#"[["x","y"],["x","y","z"]]"#), None);
    assert_eq!(categories("[-1:2] 0:1 0:1:2", r#"[["x","y"],["x","y","z"]]"#), Some(vec![0, 2, 3]));
}

#[test]
fn zeros_as_missing_are_a_loss_only_on_the_other_side_of_the_threshold() {
    let text = "tree\nversion=v3\nnum_class=1\nnum_tree_per_iteration=1\nmax_feature_idx=0\nobjective=binary sigmoid:1\n\
                feature_names=a\n\nTree=0\nnum_leaves=2\nnum_cat=0\nsplit_feature=0\nthreshold=0.1\ndecision_type=KIND\n\
                left_child=-1\nright_child=-2\nleaf_value=1 2\n\nend of trees\n";
    // The values of `decision_type`: with 4, zero is missing and goes right, although it is below the threshold. With
    // 6, zero is missing and goes left. With 0 and 2, NaN counts as zero. With 8, NaN is missing and goes right.
    for (kind, losses, score_of_nan) in
        [("4", 1, 2.0), ("6", 0, 1.0), ("0", 0, 1.0), ("2", 0, 1.0), ("8", 0, 2.0)]
    {
        let imported = read(named("lightgbm"), text.replace("KIND", kind).as_bytes(), &MODEL_NAMES).unwrap();
        assert_eq!((imported.losses.len(), imported.notes.len()), (losses, 1));
        assert_eq!(
            scores(&imported.model, &[f32::NAN, 0.05, 0.1, 0.100_000_01]),
            [score_of_nan, 1.0, 2.0, 2.0]
        );
        assert!(Explainer::new(&imported.model).is_err(), "the model has no cover");
    }
}

#[test]
fn values_that_lightgbm_reads_as_zero_are_above_its_largest_negative_threshold() {
    let text = "tree\nversion=v4\nnum_class=1\nnum_tree_per_iteration=1\nmax_feature_idx=0\nobjective=regression\n\
                feature_names=a\n\nTree=0\nnum_leaves=2\nnum_cat=0\nsplit_feature=0\nthreshold=-1.0000000180025095e-35\n\
                decision_type=10\nleft_child=-1\nright_child=-2\nleaf_value=1 2\n\nend of trees\n";
    let imported = read(named("lightgbm"), text.as_bytes(), &MODEL_NAMES).unwrap();
    let edge = 1e-35f32;
    let values = [-edge.next_up(), -edge, -edge.next_down(), 0.0, edge, f32::NAN];
    assert_eq!(scores(&imported.model, &values), [1.0, 2.0, 2.0, 2.0, 2.0, 1.0]);
}
