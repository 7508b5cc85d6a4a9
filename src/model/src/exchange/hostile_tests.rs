//! Imports of files that were made to do harm: they are refused with a message, in bounded memory and without a panic.
//! Also hand-worked models of RankLib and CatBoost.

use super::json_text::{JsonText, JsonValue, ROOT};
use super::*;
use crate::model::Model;
use crate::predict::Scorer;

fn import_text(format: &str, text: &str) -> Result<ImportedModel, ImportError> {
    let names = NameSource::Model { first: 1 };
    (ModelFormat::named(format).unwrap().import.as_ref().unwrap().read)(text.as_bytes(), &names)
}

fn scores(model: &Model, rows: &[f32]) -> Vec<f64> {
    assert_eq!(model.fault(), None);
    let mut scores = vec![0.0; rows.len() / model.features.len()];
    Scorer::new(model).unwrap().score(rows, &mut scores);
    scores
}

#[test]
fn models_of_ranklib_are_imported() {
    let split = |feature: u32, left: &str, right: &str| {
        format!(
            "<split>\n<feature> {feature} </feature>\n<threshold> 0.5 </threshold>\n<split pos=\"left\">\n{left}\n</split>\n\
             <split pos=\"right\">\n{right}\n</split>\n</split>\n"
        )
    };
    let tree = |weight: &str, root: &str| format!("<tree id=\"1\" weight=\"{weight}\">\n{root}</tree>\n");
    let output = |value: &str| format!("<output> {value} </output>");
    let one = tree("0.5", &split(1, &output("2.0"), &output("4.0")));
    let two = tree("1.0", &split(2, &output("10.0"), &output("20.0")));
    // A missing value is 0 and goes left.
    let rows = [0.5, 0.0, 0.6, 1.0, f32::NAN, f32::NAN];
    for ranker in ["LambdaMART", "MART"] {
        let text = format!("## {ranker}\n## No. of trees = 2\n\n<ensemble>\n{one}{two}</ensemble>\n");
        assert_eq!(scores(&import_text("ranklib", &text).unwrap().model, &rows), [11.0, 22.0, 11.0]);
    }
    let text = format!("## Random Forests\n\n<ensemble>\n{one}</ensemble>\n<ensemble>\n{two}</ensemble>\n");
    assert_eq!(scores(&import_text("ranklib", &text).unwrap().model, &rows), [5.5, 11.0, 5.5]);
    // Bags of several trees.
    let text =
        format!("## Random Forests\n\n<ensemble>\n{one}{two}</ensemble>\n<ensemble>\n{two}</ensemble>\n");
    assert_eq!(scores(&import_text("ranklib", &text).unwrap().model, &rows), [10.5, 21.0, 10.5]);
    let rows = [1.0, 2.0, f32::NAN, 1.0];
    for (text, expected) in [
        ("## Coordinate Ascent\n## Restart = 5\n\n1:0.5 2:-1.0\n", [-1.5, -1.0]),
        ("## Linear Regression\n## Lambda = 1.0E-10\n0:3.0 1:0.5 2:-1.0", [1.5, 2.0]),
        // A feature that was selected twice.
        ("## AdaRank\n\n2:0.25 1:1.0 2:0.25\n", [2.0, 0.5]),
        // Weights are added above the threshold, not at it.
        ("## RankBoost\n\n1:1.0:5.0 1:0.5:0.25 2:1.5:2.0\n", [2.25, 0.0]),
    ] {
        assert_eq!(scores(&import_text("ranklib", text).unwrap().model, &rows), expected, "{text}");
    }
    for (text, expected) in [
        ("## RankNet\n\n1 2 3\n", "RankNet is a neural network"),
        ("## Oracle\n", "unknown ranker"),
        ("## AdaRank\n", "there are no weights"),
        ("## RankBoost\n1:2\n", "is not feature:threshold:weight"),
        ("## LambdaMART\n<ensemble>\n<tree id=\"1\" weight=\"1\">\n", "truncated"),
        (
            "## LambdaMART\n<ensemble>\n<tree id=\"1\" weight=\"1\">\n</tree>\n</ensemble>\n",
            "a tree has no nodes",
        ),
        (
            "## LambdaMART\n<ensemble>\n<tree id=\"1\" weight=\"1\">\n<split>\n<output> x </output>",
            "is not a number",
        ),
        ("## Coordinate Ascent\n\n4294967295:1.0\n", "claims 4294967295 features"),
        ("## Coordinate Ascent\n\n10000000:1.0\n", "claims 10000000 features"),
        ("## Coordinate Ascent\n\n18446744073709551615:1.0\n", "is not a feature number"),
        ("## RankBoost\n\n0:1.0:1.0\n", "numbered from 1"),
    ] {
        let fault = import_text("ranklib", text).unwrap_err();
        assert!(fault.problem.contains(expected), "{text}: {fault:?}");
    }
    // Splits in splits without an end.
    let deep =
        format!("## LambdaMART\n<ensemble>\n<tree id=\"1\" weight=\"1\">\n{}", "<split>\n".repeat(200_000));
    assert!(import_text("ranklib", &deep).is_err());
}

/// A model of CatBoost with one symmetric tree of depth 2.
const CATBOOST: &str = r#"{"features_info":{"float_features":[
    {"borders":[0.5],"feature_index":0,"flat_feature_index":0,"feature_id":"a","has_nans":true,"nan_value_treatment":"AsFalse"},
    {"borders":[1.5],"feature_index":1,"flat_feature_index":1,"feature_id":"b","has_nans":true,"nan_value_treatment":"AsTrue"}]},
    "oblivious_trees":[{"leaf_values":[1,2,3,4],"leaf_weights":[10,20,30,40],"splits":[
        {"border":0.5,"float_feature_index":0,"split_index":0,"split_type":"FloatFeature"},
        {"border":1.5,"float_feature_index":1,"split_index":1,"split_type":"FloatFeature"}]}],
    "scale_and_bias":[2,[0.5]]}"#;

#[test]
fn models_of_catboost_are_imported() {
    let model = import_text("catboost", CATBOOST).unwrap().model;
    assert_eq!(model.features.iter().map(|feature| feature.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    // Bit 0 of a leaf is the first test, bit 1 the second; `x > border` sets the bit.
    let rows = [0.5, 1.5, 0.6, 1.5, 0.5, 1.6, 0.6, 1.6, f32::NAN, 0.0, 0.0, f32::NAN];
    assert_eq!(scores(&model, &rows), [2.5, 4.5, 6.5, 8.5, 2.5, 6.5]);
    assert_eq!(model.trees().next().unwrap().nodes[0].cover, 100.0);
    let nested = CATBOOST.split("\"oblivious_trees\"").next().unwrap().to_owned()
        + r#""trees":[{"split":{"border":0.5,"float_feature_index":0,"split_type":"FloatFeature"},
            "left":{"value":1,"weight":3},"right":{"value":2,"weight":4}}],"scale_and_bias":[1,[0]]}"#;
    let model = import_text("catboost", &nested).unwrap().model;
    assert_eq!(scores(&model, &[0.5, 0.0, 0.6, 0.0]), [1.0, 2.0]);
    for (from, to, expected) in [
        ("[1,2,3,4]", "[1,2,3]", "3 leaves instead of 4"),
        ("\"float_feature_index\":1", "\"float_feature_index\":99999999999", "not the index of a feature"),
        ("\"float_feature_index\":1", "\"float_feature_index\":-1", "not the index of a feature"),
        ("\"float_feature_index\":1", "\"float_feature_index\":0.5", "not the index of a feature"),
        ("\"float_feature_index\":1", "\"float_feature_index\":2", "a feature that does not exist"),
        ("\"flat_feature_index\":1", "\"flat_feature_index\":10000000", "claims 10000001 features"),
        (
            "\"flat_feature_index\":1",
            "\"flat_feature_index\":18446744073709551615",
            "not the index of a feature",
        ),
        ("[2,[0.5]]", "[2,[0.5,1]]", "several scores per row"),
        ("\"float_features\"", "\"categorical_features\":[{}],\"float_features\"", "categorical features"),
        ("FloatFeature", "OneHotFeature", "a split is not numeric"),
    ] {
        let fault = import_text("catboost", &CATBOOST.replace(from, to)).unwrap_err();
        assert!(fault.problem.contains(expected), "{to}: {fault:?}");
    }
}

#[test]
fn counts_in_headers_are_refused_before_anything_is_allocated() {
    let example = crate::model::example();
    let export = |format: &str| {
        let format = ModelFormat::named(format).unwrap();
        String::from_utf8(format.export(&example, &ExportRequest::default()).unwrap().bytes).unwrap()
    };
    for count in ["10000000", "18446744073709551615", "99999999999999999999"] {
        let text = export("lightgbm");
        let start = text.find("max_feature_idx=").unwrap() + "max_feature_idx=".len();
        let end = start + text[start..].find('\n').unwrap();
        let fault =
            import_text("lightgbm", &format!("{}{count}{}", &text[..start], &text[end..])).unwrap_err();
        assert!(fault.problem.starts_with("not a LightGBM model"), "{fault:?}");
        let leaves = text.replacen("num_leaves=", &format!("num_leaves={count}\nx="), 1);
        assert!(import_text("lightgbm", &leaves).is_err());
        let text = export("xgboost");
        let start = text.rfind("\"num_feature\":\"").unwrap() + "\"num_feature\":\"".len();
        let end = start + text[start..].find('"').unwrap();
        let fault =
            import_text("xgboost", &format!("{}{count}{}", &text[..start], &text[end..])).unwrap_err();
        assert!(fault.problem.starts_with("not an XGBoost model"), "{fault:?}");
    }
}

#[test]
fn damaged_onnx_files_are_refused() {
    let format = ModelFormat::named("onnx").unwrap();
    let names = NameSource::Model { first: 1 };
    let read = format.import.as_ref().unwrap().read;
    for opset in onnx::OPSETS {
        let request = ExportRequest { opset: Some(opset), ..ExportRequest::default() };
        let bytes = format.export(&crate::model::example(), &request).unwrap().bytes;
        assert!(read(&bytes, &names).is_ok());
        // Truncated files, and every byte changed: an error or a valid model, never a panic.
        for end in 0..bytes.len() - 1 {
            assert!(read(&bytes[..end], &names).is_err() || end > bytes.len() / 2, "{end}");
        }
        for place in 0..bytes.len() {
            for value in [0, 1, 0x7f, 0x80, 0xff] {
                let mut damaged = bytes.clone();
                damaged[place] = value;
                if let Ok(imported) = read(&damaged, &names) {
                    let _ = imported.model.fault();
                }
            }
        }
    }
}

#[test]
fn json_of_any_depth_is_read_without_recursion() {
    for depth in [10, 300_000] {
        let text = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(JsonText::parse(&text).is_ok());
        let text = format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth));
        assert!(JsonText::parse(&text).is_ok());
        assert!(JsonText::parse(&"[".repeat(depth)).is_err());
        assert!(JsonText::parse(&"{\"a\":".repeat(depth)).is_err());
    }
    let deeper = format!("{}{}", "[".repeat(600_000), "]".repeat(600_000));
    assert!(JsonText::parse(&deeper).err().unwrap().contains("are nested"));
    assert!(JsonText::parse(&"x".repeat(1_000_000)).err().unwrap().len() < 100);
    let json =
        JsonText::parse(r#" {"a": [1, -2.5e3, "x\"y\u00e9", null, true], "b": {}, "c": "7"} "#).unwrap();
    let list = json.list(ROOT, "a").unwrap();
    assert_eq!(*json.value(list[1]), JsonValue::Number(-2500.0));
    assert_eq!(*json.value(list[2]), JsonValue::Text("x\"y\u{e9}".to_owned()));
    assert_eq!(*json.value(list[4]), JsonValue::Word(Some(true)));
    assert_eq!(json.number(ROOT, "c"), Ok(7.0));
    for text in ["", "{", "[1 2]", "{1:2}", "{\"a\"}", "[1]]", "nul", "\"x", "{\"a\":1,}x", "[}", "1 2"] {
        assert!(JsonText::parse(text).is_err(), "{text}");
    }
}
