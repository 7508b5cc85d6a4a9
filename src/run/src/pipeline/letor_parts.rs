//! Finds the parts of a LETOR dataset in a folder: `S1.txt`, `S2.txt`, ...; or the test files of `Fold1`, `Fold2`, ...,
//! which are the same parts; or `train.txt`, `vali.txt` and `test.txt`. All may be compressed.

use planetree_base::error::{Error, Result};
use planetree_base::storage::Location;

/// Returns the names of the parts in a folder, without `.txt` and what follows, in order.
pub(super) fn letor_parts(folder: &Location) -> Result<Vec<String>> {
    let (files, folders) = folder.contents()?;
    let stems: Vec<&str> = files.iter().filter_map(|file| stem(file)).collect();
    let mut parts = numbered(stems.iter().copied(), "S");
    if parts.is_empty() {
        parts = numbered(folders.iter().map(String::as_str), "Fold");
        parts.iter_mut().for_each(|part| part.push_str("/test"));
    }
    if parts.is_empty() {
        let known = ["train", "vali", "valid", "test"];
        parts = known.iter().filter(|name| stems.contains(name)).map(|name| (*name).to_owned()).collect();
    }
    if parts.is_empty() {
        return Err(Error::place(
            folder,
            "no parts of a LETOR dataset",
            "choose a folder with S1.txt, S2.txt, ... or Fold1, Fold2, ..., or list the parts with --set parts=A,B,C",
        ));
    }
    Ok(parts)
}

/// Returns the name of a text file up to `.txt`, which may be followed by the extension of a compression.
fn stem(file: &str) -> Option<&str> {
    let (stem, rest) = file.split_once('.')?;
    (rest == "txt" || rest.starts_with("txt.")).then_some(stem)
}

/// Returns the names that consist of a prefix and a number, sorted by the number.
fn numbered<'n>(names: impl Iterator<Item = &'n str>, prefix: &str) -> Vec<String> {
    let number = |name: &'n str| Some((name.strip_prefix(prefix)?.parse::<u32>().ok()?, name));
    let mut found: Vec<(u32, &str)> = names.filter_map(number).collect();
    found.sort_unstable();
    found.dedup();
    found.into_iter().map(|(_, name)| name.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(files: &[&str]) -> Result<Vec<String>> {
        let folder = tempfile::tempdir().unwrap();
        for file in files {
            let path = folder.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        letor_parts(&Location::Local(folder.path().to_owned()))
    }

    #[test]
    fn parts_are_found_by_their_names() {
        let found = parts(&["S10.txt", "S2.txt.gz", "S1.txt", "README.txt", "Sx.txt", "train.txt"]).unwrap();
        assert_eq!(found, ["S1", "S2", "S10"]);
        let found = parts(&["Fold2/test.txt", "Fold1/test.txt", "Fold1/train.txt"]).unwrap();
        assert_eq!(found, ["Fold1/test", "Fold2/test"]);
        assert_eq!(parts(&["vali.txt", "test.txt.gz", "train.txt"]).unwrap(), ["train", "vali", "test"]);
        let error = parts(&["data.csv"]).unwrap_err();
        assert!(error.to_string().contains("no parts of a LETOR dataset"), "{error}");
    }
}
