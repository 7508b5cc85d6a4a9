//! Reports of runs, read as text and as the data of their charts.

use super::program::{ROOT, run};
use serde_json::Value;
use std::fs;
use std::path::Path;

/// A run directory with two rankers on the sample data, as in the demo.
pub fn sample_run(room: &Path) {
    let data = Path::new(ROOT).join("sample_data");
    for part in ["train", "vali", "test"] {
        let file = data.join(format!("{part}.txt"));
        run(room, &format!("convert {} --output run/{part}", file.display())).ok();
    }
    for (name, preset) in [("mart", "mart"), ("lambda", "lambdamart")] {
        let files = format!("--model run/{name}.parquet --rounds run/{name}-rounds.parquet");
        let settings = "--set num_trees=40 --set early_stopping_rounds=15";
        run(room, &format!("train --preset {preset} --data run/train --valid run/vali {files} {settings}"))
            .ok();
        let output = format!("--output run/{name}-scores.parquet");
        run(room, &format!("predict --model run/{name}.parquet --data run/test {output}")).ok();
    }
}

/// Writes a report and returns its HTML.
pub fn report(room: &Path, arguments: &str) -> String {
    run(room, &format!("report {arguments} --output report.html")).ok();
    fs::read_to_string(room.join("report.html")).unwrap()
}

/// The JSON data of the charts.
pub fn data_of(page: &str) -> Value {
    let start = page.find("id=\"report-data\">").unwrap() + "id=\"report-data\">".len();
    let length = page[start..].find("</script>").unwrap();
    serde_json::from_str(&page[start..start + length]).unwrap()
}

/// The chart whose title starts with `title`.
pub fn chart<'d>(data: &'d Value, title: &str) -> &'d Value {
    let charts = data["charts"].as_array().unwrap();
    let found = charts.iter().find(|chart| chart["label"].as_str().unwrap().starts_with(title));
    found.unwrap_or_else(|| {
        panic!("no {title:?} among {:?}", charts.iter().map(|chart| &chart["label"]).collect::<Vec<_>>())
    })
}

pub fn assert_close(found: &Value, expected: &Value) {
    let (found, expected) = (found.as_f64().unwrap(), expected.as_f64().unwrap());
    assert!((found - expected).abs() <= 1e-5 * expected.abs().max(1e-9), "{found} is not {expected}");
}

pub fn json_output(room: &Path, arguments: &str) -> Value {
    serde_json::from_str(&run(room, arguments).ok().stdout).unwrap()
}
