//! Models survive a round trip, and invalid model files are rejected.

use super::*;
use crate::model::example;
use crate::model::example::leaf;

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
    let stump = Model { trees: Vec::new(), ensemble: Ensemble::Bag, ..model.clone() };
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
            let model = Model { base_score: score, features, trees: Vec::new(), ..example() };
            model.write(&location).unwrap();
            assert_eq!(Model::read(&location).unwrap(), model);
        }
    }
}

#[test]
fn an_invalid_model_is_not_written() {
    type Fault = (&'static str, fn(&mut Model));
    fn first(model: &mut Model) -> &mut Split {
        model.trees[0].nodes[0].split.as_mut().unwrap()
    }
    let faults: &[Fault] = &[
        ("the base score is NaN", |model| model.base_score = f64::NAN),
        ("duplicate feature name f1", |model| model.features[1].name = "f1".into()),
        ("the fill value of feature größe \"x\" is not finite", |model| {
            model.features[1].fill = Some(f32::INFINITY)
        }),
        ("category \"red\" of feature f1 has two codes", |model| {
            model.features[0].words = ["red", "blue", "red"].map(str::to_owned).to_vec();
        }),
        ("tree 1, node 0: the tree has no nodes", |model| model.trees[1].nodes.clear()),
        ("tree 0, node 0: invalid child: 0", |model| first(model).left = 0),
        ("tree 0, node 0: invalid child: 99", |model| first(model).right = 99),
        ("tree 0, node 0: child 1 has two parents", |model| first(model).right = 1),
        ("tree 0, node 1: child 2 has two parents", |model| {
            model.trees[0].nodes[1].split.as_mut().unwrap().left = 2;
        }),
        ("tree 0, node 0: unknown feature 3", |model| first(model).feature = 3),
        ("tree 0, node 0: the threshold is inf", |model| first(model).threshold = f32::INFINITY),
        ("tree 0, node 0: the gain is NaN", |model| first(model).gain = f64::NAN),
        ("a middle child is required if missing values go there", |model| {
            first(model).missing = Branch::Middle
        }),
        ("a middle child is required if missing values go there", |model| {
            model.trees[0].nodes[1].split.as_mut().unwrap().missing = Branch::Left;
        }),
        ("tree 0, node 2: the value is NaN", |model| model.trees[0].nodes[2].value = f64::NAN),
        ("tree 0, node 2: the cover is inf", |model| model.trees[0].nodes[2].cover = f64::INFINITY),
        ("tree 0, node 2: the depth is 7, expected 1", |model| model.trees[0].nodes[2].depth = 7),
        ("tree 0, node 6: the node has no parent", |model| model.trees[0].nodes.push(leaf(0, 0.0))),
    ];
    for (problem, corrupt) in faults {
        let root = tempfile::tempdir().unwrap();
        let mut model = example();
        corrupt(&mut model);
        let error = model.write(&model_location(&root)).unwrap_err().to_string();
        assert!(error.contains(problem), "{error}");
    }
}

/// Writes a file with invalid content but a valid checksum, and returns the error of reading it.
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
    let newer = header.replace("\"format\":1", "\"format\":2,\"what\":3");
    let error = forge(&location, &newer, None);
    assert!(error.to_string().contains("written by a newer planetree"), "{error}");
    for wrong in ["", "{}", "[1]", &header.replace("boost", "magic"), &header[..header.len() - 1]] {
        assert!(forge(&location, wrong, None).to_string().contains("not a valid model: "));
    }
    let writer = ModelWriter::create(&location, &model.features).unwrap();
    let whole = writer.tree_as_rows(&model.trees[0]).unwrap();
    drop(writer);
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
        ("no column tree", whole.project(&[1, 2, 3]).unwrap()),
        ("column tree has type Float64", replaced("tree", Arc::new(Float64Array::from(vec![0.0; 6])))),
        ("column tree has nulls", replaced("tree", Arc::new(Int32Array::from(vec![None; 6])))),
        ("tree 7, node 0: trees are out of order", replaced("tree", integers([7; 6]))),
        ("tree -1, node 0: trees are out of order", replaced("tree", integers([-1; 6]))),
        ("tree 0, node 9: nodes are out of order", replaced("node", integers([0, 9, 2, 3, 4, 5]))),
        ("tree 0, node 0: nodes are out of order", replaced("node", integers([0; 6]))),
        ("negative depth: -1", replaced("depth", integers([0, -1, 1, 2, 2, 2]))),
        ("the nodes of a tree have different groups", replaced("group", integers([0, 1, 0, 0, 0, 0]))),
        (
            "children without a feature",
            replaced("feature", Arc::new(StringArray::from(vec![None::<&str>; 6]))),
        ),
        ("unknown feature \"?\"", replaced("feature", Arc::new(StringArray::from(vec!["?"; 6])))),
        ("a feature without two children", replaced("left", Arc::new(Int32Array::from(vec![None; 6])))),
        ("negative child: -5", replaced("left", integers([-5; 6]))),
        (
            "a feature without a threshold or gain",
            replaced("gain", Arc::new(Float64Array::from(vec![None; 6]))),
        ),
        (
            "`missing` is not left, right or middle",
            replaced("missing", Arc::new(StringArray::from(vec!["up"; 6]))),
        ),
        ("the threshold is inf", replaced("threshold", Arc::new(Float32Array::from(vec![f32::INFINITY; 6])))),
    ];
    for (problem, rows) in &forgeries {
        let error = forge(&location, &header, Some(rows)).to_string();
        assert!(error.contains("not a valid model: ") && error.contains(problem), "{problem}: {error}");
    }
    let mut writer = TableWriter::create(&location, TableKind::Model, SCHEMA.clone()).unwrap();
    writer.set_metadata(HEADER, header.replace("\"format\":1", "\"format\":1,\"later\":true"));
    writer.write(&whole).unwrap();
    writer.finish().unwrap();
    assert_eq!(Model::read(&location).unwrap().trees, model.trees[..1]);
}
