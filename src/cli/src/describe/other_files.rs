//! Says how to look at a file that planetree did not write, from what it looks like.

use crate::import::with_import_remedy;
use planetree_base::error::Error;
use planetree_base::storage::Location;
use planetree_data::table::TableReader;
use std::path::Path;

/// The extensions by which SQL knows the formats of text files.
const OF_SQL: [&str; 6] = [".csv", ".tsv", ".tab", ".json", ".ndjson", ".jsonl"];

/// Bytes of a file that are looked at.
const HEAD: u64 = 4096;

/// Changes the remedy of an error about a file that is not a table of planetree. `path` is the file as it was written.
pub(super) fn with_remedy(error: Error, location: &Location, path: &str) -> Error {
    if !matches!(TableReader::kind_of(location), Ok(None)) {
        return error;
    }
    let name = location.name().to_ascii_lowercase();
    let is_text = error.to_string().ends_with("it is not a Parquet file");
    let general = error.remedy().map(str::to_owned);
    let error = if is_text { with_import_remedy(error, location) } else { error };
    if error.remedy() != general.as_deref() {
        return error; // a model of another program
    }
    let is_unknown = is_text && !OF_SQL.iter().any(|extension| name.ends_with(extension));
    if is_unknown && let Some(remedy) = head_of(location).and_then(|head| remedy_for(&head, path)) {
        return error.map_remedy(|_| remedy);
    }
    let allow = allow_option(location);
    let otherwise = if is_unknown {
        format!(
            "convert LETOR text first: planetree convert {path} --output DATASET; CSV in a file of any name is described by \
             planetree sql {allow}-c \"SUMMARIZE SELECT * FROM read_csv('{path}')\""
        )
    } else {
        format!("planetree sql {allow}-c \"SUMMARIZE '{path}'\" describes tables in CSV, JSON and Parquet")
    };
    error.map_remedy(|remedy| format!("{remedy}; {otherwise}"))
}

/// Returns the option, followed by a space, without which SQL may not read a file outside of the current directory.
fn allow_option(location: &Location) -> String {
    let directory = match location {
        Location::Local(path) => {
            let (Ok(path), Ok(current)) = (path.canonicalize(), Path::new(".").canonicalize()) else {
                return String::new();
            };
            match path.parent() {
                Some(parent) if !parent.starts_with(&current) => parent.display().to_string(),
                _ => return String::new(),
            }
        }
        Location::Remote(_) => match location.to_string().rsplit_once('/') {
            Some((parent, _)) => format!("{parent}/"),
            None => return String::new(),
        },
    };
    format!("--allow-path {directory} ")
}

/// Returns the beginning of a file as text.
fn head_of(location: &Location) -> Option<String> {
    let size = location.size().ok()??;
    let head = location.read_range(0, size.min(HEAD)).ok()?;
    Some(String::from_utf8_lossy(&head).into_owned())
}

/// Returns the command that reads a file which begins with this text; `None` if there is no sign of what it is.
fn remedy_for(head: &str, path: &str) -> Option<String> {
    let begin = head.trim_start().to_ascii_lowercase();
    if begin.starts_with("<!doctype html") || begin.starts_with("<html") {
        return Some(
            "this is a web page: open it in a browser; `planetree describe RUN` describes the directory that a report is of"
                .to_owned(),
        );
    }
    let words: Vec<&str> = head.lines().next()?.split_whitespace().collect();
    let is_number = |word: &str| word.parse::<f64>().is_ok();
    match words[..] {
        [_, "Q0" | "q0" | "0", _, rank, score, _] if is_number(rank) && is_number(score) => Some(format!(
            "this looks like a TREC run: planetree evaluate --run {path} --qrels FILE evaluates it"
        )),
        [_, iteration, _, relevance] if is_number(iteration) && is_number(relevance) => Some(format!(
            "this looks like qrels, judgments of TREC: planetree evaluate --run FILE --qrels {path} evaluates a run by them"
        )),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_outside_of_the_current_directory_need_an_option() {
        let room = tempfile::tempdir().unwrap();
        let file = room.path().join("rows.txt");
        std::fs::write(&file, "1 qid:1 1:2\n").unwrap();
        let directory = room.path().canonicalize().unwrap();
        assert_eq!(allow_option(&Location::Local(file)), format!("--allow-path {} ", directory.display()));
        assert_eq!(allow_option(&Location::Local("Cargo.toml".into())), "");
    }

    #[test]
    fn files_of_other_commands_are_recognised() {
        for (head, expected) in [
            ("1 Q0 d1 1 0.5 bm25\n", "planetree evaluate --run F --qrels FILE"),
            ("1 0 d1 2\n2 0 d1 0\n", "planetree evaluate --run FILE --qrels F"),
            ("\n<!DOCTYPE html>\n<html>", "open it in a browser"),
        ] {
            let remedy = remedy_for(head, "F").unwrap_or_default();
            assert!(remedy.contains(expected), "{remedy}");
        }
        for head in ["", "2 qid:1 1:0.5 2:3\n", "qid,label,a\n", "0.5\n0.25\n"] {
            assert_eq!(remedy_for(head, "F"), None);
        }
    }
}
