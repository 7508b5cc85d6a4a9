//! Datasets as other tools read them: pyarrow and DuckDB agree with a naive parse of the text.

use crate::support::*;
use std::fs;
use std::process::Command;

/// Compares a LETOR text with the dataset made of it; prints the numbers of rows, queries and features.
const CHECK: &str = r#"
import sys, math, json
import pyarrow.dataset as ds, duckdb, numpy as np
text, dataset = sys.argv[1], sys.argv[2]
sums, rows, queries, labels = {}, 0, set(), 0.0
for line in open(text):
    body = line.split('#')[0].split()
    if not body:
        continue
    rows += 1
    labels += float(body[0])
    queries.add(body[1][4:])
    for entry in body[2:]:
        index, value = entry.split(':')
        if value == 'NULL':
            continue
        sums.setdefault('f' + index, []).append(float(np.float32(value)))
table = ds.dataset(dataset, format='parquet').to_table()
assert table.num_rows == rows, (table.num_rows, rows)
assert len(set(table['query_id'].to_pylist())) == len(queries)
columns = [name for name in table.column_names if name.startswith('f') and name[1:].isdigit()]
assert set(sums) <= set(columns), sorted(set(sums) - set(columns))
con = duckdb.connect()
select = ', '.join(f'sum({name}::DOUBLE), count({name})' for name in columns)
found = con.execute(f"select count(*), sum(label::DOUBLE), {select} from '{dataset}/*.parquet'").fetchone()
assert found[0] == rows and abs(found[1] - labels) < 1e-6
for place, name in enumerate(columns):
    values = sums.get(name, [])
    total = math.fsum(values)
    arrow = math.fsum(v for v in table[name].to_pylist() if v is not None)
    duck = found[2 + 2 * place] or 0.0
    assert found[3 + 2 * place] == len(values) == len(table[name]) - table[name].null_count, name
    assert arrow == total, (name, arrow, total)
    assert abs(duck - total) <= 1e-9 * max(1.0, abs(total)) , (name, duck, total)
print(rows, len(queries), len(columns))
"#;

fn check(text: &std::path::Path, dataset: &std::path::Path) -> Option<String> {
    let output = Command::new(python()?).args(["-c", CHECK]).arg(text).arg(dataset).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).unwrap().trim().to_owned())
}

#[test]
fn pyarrow_and_duckdb_agree_with_a_naive_parse() {
    let room = room();
    for (shape, rows) in [("letor", 4000), ("mslr", 4000), ("yahoo", 2000)] {
        run(room.path(), &format!("sample --shape {shape} --rows {rows} --seed 5 --output {shape}")).ok();
        run(room.path(), &format!("convert {shape}/train.txt --output {shape}/dataset --partition-rows 700"))
            .ok();
        let Some(summary) =
            check(&room.path().join(shape).join("train.txt"), &room.path().join(shape).join("dataset"))
        else {
            return;
        };
        assert!(summary.starts_with(&format!("{} ", rows / 5 * 3)) && !summary.ends_with(" 0"), "{summary}");
    }
}

#[test]
fn pyarrow_and_duckdb_read_real_data_unchanged() {
    let Some(data) = shared("data") else { return };
    let room = room();
    for (set, name) in [("MQ2008", "mq2008"), ("OHSUMED/Feature-null", "ohsumed"), ("MSLR-sample", "mslr")] {
        let text = room.path().join(format!("{name}.txt"));
        let script = format!("zcat {}/S*.txt.gz > {}", data.join(set).display(), text.display());
        assert!(Command::new("bash").args(["-c", &script]).status().unwrap().success());
        run(room.path(), &format!("convert {name}.txt --output {name}")).ok();
        let Some(summary) = check(&text, &room.path().join(name)) else { return };
        assert!(!summary.starts_with("0 ") && !summary.ends_with(" 0"), "{name}: {summary}");
        fs::remove_file(text).unwrap();
    }
}
