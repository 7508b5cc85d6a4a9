//! Tests that models are read back as they were written, and that invalid model files are rejected.

use super::*;
use crate::model::example;
use crate::model::example::leaf;
use crate::model::{
    Branch, ClassBounds, Combine, Normalisation, Part, PartFamily, PartRole, Split, TreeEnsemble,
};
use arrow::array::{ArrayRef, Float32Array, Float64Array, Int32Array, RecordBatch, StringArray};
use std::sync::Arc;

fn ensemble(model: &mut Model) -> &mut TreeEnsemble {
    model.parts[0].family.trees_mut().unwrap()
}

/// Returns the example model with two additional parts. The last part has no trees.
fn three_parts() -> Model {
    let mut model = example();
    let mut other = model.parts[0].clone();
    let mut empty = TreeEnsemble { combine: Combine::Wins, ..other.family.trees().unwrap().clone() };
    empty.trees.clear();
    other.family.trees_mut().unwrap().combine = Combine::Mean;
    model.intercept = -0.1;
    model.parts.push(Part {
        name: "größe".to_owned(),
        weight: 1e-300,
        normalisation: Normalisation::UnitVariance,
        configuration: "a = 1\n".to_owned(),
        role: Some(PartRole {
            stage: 2,
            run: 3,
            class: Some(ClassBounds { at_most: 0, next: 2 }),
            grade: None,
        }),
        ..other
    });
    model.parts.push(Part { weight: -2.0, family: PartFamily::Trees(empty), ..model.parts[0].clone() });
    model
}

fn model_location(root: &tempfile::TempDir) -> Location {
    Location::Local(root.path().join("model"))
}

#[test]
fn a_model_round_trips() {
    let root = tempfile::tempdir().unwrap();
    let location = model_location(&root);
    let model = example();
    model.write(&location).unwrap();
    assert_eq!(Model::read(&location).unwrap(), model);
    let parts = three_parts();
    parts.write(&location).unwrap();
    assert_eq!(Model::read(&location).unwrap(), parts);
    let mut stump = model.clone();
    (ensemble(&mut stump).trees, ensemble(&mut stump).combine) = (Vec::new(), Combine::Mean);
    stump.write_with(&location, &[("planetree.checkpoint", "{}".to_owned())]).unwrap();
    let (read, metadata) = Model::read_with(&location).unwrap();
    assert_eq!(read, stump);
    assert_eq!(metadata["planetree.checkpoint"], "{}");
    assert_eq!(metadata["planetree.configuration"], model.configuration);
}

#[test]
fn any_number_round_trips_exactly() {
    let root = tempfile::tempdir().unwrap();
    let location = model_location(&root);
    let mut bits = 0x9e37_79b9_7f4a_7c15_u64;
    for _ in 0..200 {
        bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (score, fill) = (f64::from_bits(bits), f32::from_bits((bits >> 32) as u32));
        if score.is_finite() && fill.is_finite() {
            let features = vec![ModelFeature { fill: Some(fill), ..ModelFeature::new("f") }];
            let mut model = Model { intercept: -score, features, ..example() };
            model.parts[0].weight = score;
            (ensemble(&mut model).base_score, ensemble(&mut model).trees) = (score, Vec::new());
            model.write(&location).unwrap();
            assert_eq!(Model::read(&location).unwrap(), model);
        }
    }
}

#[test]
fn an_invalid_model_is_not_written() {
    type Fault = (&'static str, fn(&mut Model));
    fn first(model: &mut Model) -> &mut Split {
        ensemble(model).trees[0].nodes[0].split.as_mut().unwrap()
    }
    let faults: &[Fault] = &[
        ("the intercept is inf", |model| model.intercept = f64::INFINITY),
        ("the model has no parts", |model| model.parts.clear()),
        ("part 0 (trees): the weight is NaN", |model| model.parts[0].weight = f64::NAN),
        ("part 0 (trees): the base score is NaN", |model| ensemble(model).base_score = f64::NAN),
        ("part 0 (trees): unknown base feature 3: there are 3 features", |model| {
            ensemble(model).base_feature = Some(3);
        }),
        ("duplicate feature name f1", |model| model.features[1].name = "f1".into()),
        ("the fill value of feature größe \"x\" is not finite", |model| {
            model.features[1].fill = Some(f32::INFINITY)
        }),
        ("category \"red\" of feature f1 has two codes", |model| {
            model.features[0].words = ["red", "blue", "red"].map(str::to_owned).to_vec();
        }),
        ("tree 1, node 0: the tree has no nodes", |model| ensemble(model).trees[1].nodes.clear()),
        (
            "part 0 (trees): tree 0, node 0: invalid child: 0 does not come after its parent (a cycle)",
            |model| first(model).left = 0,
        ),
        ("tree 0, node 0: invalid child: 99 does not exist", |model| first(model).right = 99),
        ("tree 0, node 0: child 1 has two parents", |model| first(model).right = 1),
        ("tree 0, node 1: child 2 has two parents", |model| {
            ensemble(model).trees[0].nodes[1].split.as_mut().unwrap().left = 2;
        }),
        ("part 0 (trees): tree 0, node 0: unknown feature 3: there are 3 features", |model| {
            first(model).feature = 3
        }),
        ("tree 0, node 0: the threshold is inf", |model| first(model).threshold = f32::INFINITY),
        ("tree 0, node 0: the gain is NaN", |model| first(model).gain = f64::NAN),
        ("a middle child is not allowed unless missing values go there", |model| {
            ensemble(model).trees[0].nodes[1].split.as_mut().unwrap().missing = Branch::Left;
        }),
        ("tree 0, node 2: the value is NaN", |model| ensemble(model).trees[0].nodes[2].value = f64::NAN),
        ("tree 0, node 2: the cover is inf", |model| ensemble(model).trees[0].nodes[2].cover = f64::INFINITY),
        ("tree 0, node 2: the depth is 7, expected 1", |model| ensemble(model).trees[0].nodes[2].depth = 7),
        ("tree 0, node 6: the node has no parent", |model| ensemble(model).trees[0].nodes.push(leaf(0, 0.0))),
    ];
    for (problem, corrupt) in faults {
        let root = tempfile::tempdir().unwrap();
        let mut model = example();
        corrupt(&mut model);
        let error = model.write(&model_location(&root)).unwrap_err().to_string();
        assert!(error.contains(problem), "{error}");
    }
}

/// Writes a model file with invalid content but a valid checksum, and returns the error from reading it.
fn forge(location: &Location, header: &str, rows: Option<&RecordBatch>) -> Error {
    let schema = rows.map_or_else(|| SCHEMA.clone(), RecordBatch::schema);
    let mut writer = TableWriter::create(location, TableKind::Model, schema).unwrap();
    writer.set_metadata(HEADER, header.to_owned());
    if let Some(rows) = rows {
        writer.write(rows).unwrap();
    }
    writer.finish().unwrap();
    Model::read(location).expect_err("the file should be rejected")
}

#[test]
fn a_forged_file_is_rejected() {
    let root = tempfile::tempdir().unwrap();
    let location = model_location(&root);
    let model = example();
    model.write(&location).unwrap();
    let header = TableReader::open(&location, TableKind::Model).unwrap().metadata(HEADER).unwrap().to_owned();
    let newer = header.replace("\"format\":2", "\"format\":9,\"what\":3");
    let error = forge(&location, &newer, None);
    assert!(error.to_string().contains("written by a newer planetree"), "{error}");
    for wrong in ["", "{}", "[1]", &header.replace("\"sum\"", "\"magic\""), &header[..header.len() - 1]] {
        assert!(forge(&location, wrong, None).to_string().contains("not a valid model: "));
    }
    let first = model.trees().next().unwrap();
    let whole = rows_as_batch(0, &mut tree_rows(0, first), &model.features).unwrap();
    let replaced = |name: &str, column: ArrayRef| -> RecordBatch {
        let mut columns: Vec<(String, ArrayRef, bool)> = whole
            .schema()
            .fields()
            .iter()
            .zip(whole.columns())
            .map(|(field, column)| (field.name().clone(), column.clone(), true))
            .collect();
        columns.iter_mut().find(|(existing, ..)| existing == name).unwrap().1 = column;
        RecordBatch::try_from_iter_with_nullable(columns).unwrap()
    };
    let integers = |values: [i32; 6]| -> ArrayRef { Arc::new(Int32Array::from_iter_values(values)) };
    let forgeries = [
        ("column tree is missing", whole.project(&[0, 2, 3]).unwrap()),
        ("negative part: -1", replaced("part", integers([-1; 6]))),
        (
            "a row belongs to part 1, but the number of parts is 1",
            replaced("part", integers([0, 0, 1, 0, 0, 0])),
        ),
        ("part 0 (trees): the part has 6 rows, expected 10", whole.clone()),
        (
            "column tree has the unexpected type Float64",
            replaced("tree", Arc::new(Float64Array::from(vec![0.0; 6]))),
        ),
        ("column tree has nulls", replaced("tree", Arc::new(Int32Array::from(vec![None; 6])))),
        ("tree 7, node 0: tree numbers are not in ascending order", replaced("tree", integers([7; 6]))),
        ("part 0 (trees): negative tree: -1", replaced("tree", integers([-1; 6]))),
        ("tree 0, node 9: nodes are out of order", replaced("node", integers([0, 9, 2, 3, 4, 5]))),
        ("tree 0, node 0: nodes are out of order", replaced("node", integers([0; 6]))),
        ("negative depth: -1", replaced("depth", integers([0, -1, 1, 2, 2, 2]))),
        (
            "the node has children, but no feature",
            replaced("feature", Arc::new(StringArray::from(vec![None::<&str>; 6]))),
        ),
        ("unknown feature \"?\"", replaced("feature", Arc::new(StringArray::from(vec!["?"; 6])))),
        (
            "the node has a feature, but not two children",
            replaced("left", Arc::new(Int32Array::from(vec![None; 6]))),
        ),
        ("negative child: -5", replaced("left", integers([-5; 6]))),
        (
            "the node has a feature, but no threshold or no gain",
            replaced("gain", Arc::new(Float64Array::from(vec![None; 6]))),
        ),
        (
            "`missing` is not left, right or middle",
            replaced("missing", Arc::new(StringArray::from(vec!["up"; 6]))),
        ),
    ];
    for (problem, rows) in &forgeries {
        let error = forge(&location, &header, Some(rows)).to_string();
        assert!(error.contains("not a valid model: ") && error.contains(problem), "{problem}: {error}");
    }
    // With the expected number of rows, the file passes the check of the row count, and the values are checked.
    let header = header.replace("\"rows\":10", "\"rows\":6");
    let infinite = replaced("threshold", Arc::new(Float32Array::from(vec![f32::INFINITY; 6])));
    let error = forge(&location, &header, Some(&infinite)).to_string();
    assert!(error.contains("part 0 (trees): tree 0, node 0: the threshold is inf"), "{error}");
    // Unknown keys in the header are ignored.
    let mut writer = TableWriter::create(&location, TableKind::Model, SCHEMA.clone()).unwrap();
    writer.set_metadata(HEADER, header.replace("\"format\":2", "\"format\":2,\"later\":true"));
    writer.write(&whole).unwrap();
    writer.finish().unwrap();
    assert_eq!(Model::read(&location).unwrap().trees().collect::<Vec<_>>(), [first]);
}

#[test]
fn forged_parts_are_rejected_by_name() {
    let root = tempfile::tempdir().unwrap();
    let location = model_location(&root);
    let model = three_parts();
    model.write(&location).unwrap();
    let header = TableReader::open(&location, TableKind::Model).unwrap().metadata(HEADER).unwrap().to_owned();
    let rows = |part: usize| {
        let first = model.trees().next().unwrap();
        rows_as_batch(part, &mut tree_rows(0, first), &model.features).unwrap()
    };
    let error = forge(&location, &header, Some(&rows(0))).to_string();
    assert!(error.contains("part 0 (trees): the part has 6 rows, expected 10"), "{error}");
    let error = forge(&location, &header.replace("\"rows\":10", "\"rows\":6"), Some(&rows(0))).to_string();
    assert!(error.contains("part 1 (größe): the part has no rows, expected 6"), "{error}");
    let unordered = arrow::compute::concat_batches(&SCHEMA, [&rows(1), &rows(0)]).unwrap();
    let error = forge(&location, &header, Some(&unordered)).to_string();
    assert!(error.contains("part 0 (trees): parts are out of order"), "{error}");
    let unknown = header.replacen("\"kind\":\"trees\"", "\"kind\":\"oracle\"", 1);
    let error = forge(&location, &unknown, None);
    assert!(error.to_string().contains("part 0 (trees) is of an unknown kind: \"oracle\""), "{error}");
    assert!(error.remedy().unwrap().contains("newer version"), "{error}");
    for (old, new, problem) in [
        ("\"weight\":1.0", "\"weight\":1e999", "part 0: number out of range"),
        ("\"weight\":-2.0", "\"weight\":null", "part 2: the weight is null, but it must be a finite number"),
        ("\"unit_variance\"", "\"magic\"", "part 1: unknown variant `magic`"),
    ] {
        let error = forge(&location, &header.replacen(old, new, 1), None).to_string();
        assert!(error.contains(&format!("not a valid model: {problem}")), "{error}");
    }
}
