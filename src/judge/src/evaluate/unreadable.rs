//! Says how to pass a file that is not a table of predictions, from what it looks like.

use planetree_base::error::Error;
use planetree_base::storage::Location;

/// What can be read as predictions, and what has an option of its own.
pub(super) const READABLE: &str = "use predictions in Parquet, .csv, .tsv, .json or .ndjson; pass TREC runs with --run FILE and --qrels FILE; \
     `planetree evaluate` also reads text scores with --scores FILE and --data DATASET";

/// Bytes of a file that are looked at.
const HEAD: u64 = 4096;

/// Changes the remedy of an error about a file that is not a table, if the file is a TREC run, qrels, or the directory
/// of a cross-validation.
pub(super) fn with_remedy(error: Error, location: &Location) -> Error {
    if error.remedy() != Some(READABLE) {
        return error;
    }
    match remedy_for(location) {
        Some(remedy) => error.map_remedy(|_| remedy),
        None => error,
    }
}

fn remedy_for(location: &Location) -> Option<String> {
    let inside = location.join("predictions.parquet");
    if inside.size().ok()?.is_some() {
        return Some(format!("name the table in it: {inside}"));
    }
    let size = location.size().ok()??;
    let head = location.read_range(0, size.min(HEAD)).ok()?;
    let text = String::from_utf8_lossy(&head);
    let words: Vec<&str> = text.lines().next()?.split_whitespace().collect();
    let is_number = |word: &str| word.parse::<f64>().is_ok();
    match words[..] {
        [_, "Q0" | "q0" | "0", _, rank, score, _] if is_number(rank) && is_number(score) => {
            Some(format!("this looks like a TREC run: pass it with --run {location} and --qrels FILE"))
        }
        [_, iteration, _, relevance] if is_number(iteration) && is_number(relevance) => Some(format!(
            "this looks like qrels: pass them with --qrels {location}, and the ranking with --run FILE"
        )),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_qrels_and_directories_are_recognised() {
        let room = tempfile::tempdir().unwrap();
        let place = |name: &str| Location::Local(room.path().join(name));
        let remedy = |text: &str| {
            std::fs::write(room.path().join("file"), text).unwrap();
            let error = Error::place(place("file"), "not a planetree table", READABLE);
            with_remedy(error, &place("file")).remedy().unwrap_or_default().to_owned()
        };
        assert!(remedy("1 Q0 d1 1 0.5 bm25\n1 Q0 d2 2 0.25 bm25\n").contains("pass it with --run "));
        assert!(remedy("1 0 d1 2\n").contains("pass them with --qrels "));
        for text in ["0.5\n0.25\n", "", "2 qid:1 1:0.5 2:3\n", "1 2 3 4 5 6\n", "\u{0}\u{1}"] {
            assert_eq!(remedy(text), READABLE);
        }
        std::fs::create_dir(room.path().join("cv")).unwrap();
        let of_directory = || with_remedy(Error::place("cv", "a directory", READABLE), &place("cv"));
        assert_eq!(of_directory().remedy(), Some(READABLE));
        std::fs::write(room.path().join("cv/predictions.parquet"), "").unwrap();
        assert!(of_directory().remedy().is_some_and(|remedy| remedy.ends_with("cv/predictions.parquet")));
        let other = with_remedy(Error::place("cv", "damaged", "write it again"), &place("cv"));
        assert_eq!(other.remedy(), Some("write it again"));
    }
}
