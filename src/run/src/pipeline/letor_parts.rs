//! Finds the parts of a LETOR dataset in a folder: `S1.txt`, `S2.txt`, ...; or the test files of `Fold1`, `Fold2`, ...,
//! which are the same parts; or `train.txt`, `vali.txt` and `test.txt`. All may be compressed. And finds the files of the
//! first fold: those of `Fold1`, or the parts that the first fold of `planetree cv` has.

use planetree_base::error::{Error, Result};
use planetree_base::storage::Location;
use std::collections::BTreeMap;

/// Returns the names of the parts in a folder, without `.txt` and what follows, in order.
pub(super) fn letor_parts(folder: &Location) -> Result<Vec<String>> {
    let (files, folders) = folder.contents()?;
    let texts = TextFiles::of(&files);
    let mut parts = numbered(texts.names(), "S");
    if parts.is_empty() {
        parts = numbered(folders.iter().map(String::as_str), "Fold");
        parts.iter_mut().for_each(|part| part.push_str("/test"));
    }
    if parts.is_empty() {
        let known = ["train", "vali", "valid", "test"];
        parts = known.into_iter().filter(|name| texts.file(name).is_some()).map(str::to_owned).collect();
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

/// What a fold has files for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FoldRole {
    Train,
    Valid,
    Test,
}

impl FoldRole {
    /// Returns the files that the first fold has for this, in order, by their paths within the folder.
    pub(super) fn files_in(self, folder: &Location) -> Result<Vec<String>> {
        let (files, folders) = folder.contents()?;
        let texts = TextFiles::of(&files);
        let parts = numbered(texts.names(), "S");
        let found: Vec<String> = match numbered(folders.iter().map(String::as_str), "Fold").first() {
            _ if !parts.is_empty() => {
                let of_fold = self.of_parts(parts);
                of_fold.iter().filter_map(|part| texts.file(part)).map(str::to_owned).collect()
            }
            None => self.usual(&texts).map(str::to_owned).collect(),
            Some(fold) => {
                let (files, _) = folder.join(fold).contents()?;
                self.usual(&TextFiles::of(&files)).map(|file| format!("{fold}/{file}")).collect()
            }
        };
        if found.is_empty() {
            return Err(Error::place(
                folder,
                "no first fold of a LETOR dataset",
                "choose a folder with S1.txt, S2.txt, S3.txt, ... or Fold1, or with train.txt, vali.txt and test.txt",
            ));
        }
        Ok(found)
    }

    /// The first fold trains on all parts but two, validates on the next one, and tests on the last one.
    fn of_parts(self, mut parts: Vec<String>) -> Vec<String> {
        let (Some(test), Some(valid), false) = (parts.pop(), parts.pop(), parts.is_empty()) else {
            return Vec::new();
        };
        match self {
            FoldRole::Train => parts,
            FoldRole::Valid => vec![valid],
            FoldRole::Test => vec![test],
        }
    }

    fn usual<'f>(self, texts: &TextFiles<'f>) -> impl Iterator<Item = &'f str> {
        let names: &[&str] = match self {
            FoldRole::Train => &["train"],
            FoldRole::Valid => &["vali", "valid"],
            FoldRole::Test => &["test"],
        };
        names.iter().filter_map(move |name| texts.file(name))
    }
}

/// The text files among some files, by their names without `.txt` and what follows.
struct TextFiles<'f>(BTreeMap<&'f str, &'f str>);

impl<'f> TextFiles<'f> {
    /// If a file and its compressed copy are there, this has the file: both would be the same rows twice.
    fn of(files: &'f [String]) -> Self {
        let mut texts: BTreeMap<&str, &str> = BTreeMap::new();
        for (stem, file) in files.iter().filter_map(|file| Some((stem(file)?, file.as_str()))) {
            let known = texts.entry(stem).or_insert(file);
            *known = (*known).min(file); // S1.txt comes before S1.txt.gz
        }
        TextFiles(texts)
    }

    fn names(&self) -> impl Iterator<Item = &'f str> {
        self.0.keys().copied()
    }

    fn file(&self, name: &str) -> Option<&'f str> {
        self.0.get(name).copied()
    }
}

/// Returns the name of a text file up to `.txt`, which may be followed by the extension of a compression. Backups and
/// checksums, such as `S1.txt.bak` and `S1.txt.md5`, are not data.
fn stem(file: &str) -> Option<&str> {
    let (stem, rest) = file.split_once('.')?;
    ["txt", "txt.gz", "txt.bz2", "txt.xz", "txt.zst"].contains(&rest).then_some(stem)
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

    fn in_folder<T>(files: &[&str], find: impl Fn(&Location) -> T) -> T {
        let folder = tempfile::tempdir().unwrap();
        for file in files {
            let path = folder.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        find(&Location::Local(folder.path().to_owned()))
    }

    #[test]
    fn parts_are_found_by_their_names() {
        let parts = |files: &[&str]| in_folder(files, letor_parts);
        let found = parts(&["S10.txt", "S2.txt.gz", "S1.txt", "README.txt", "Sx.txt", "train.txt"]).unwrap();
        assert_eq!(found, ["S1", "S2", "S10"]);
        let found = parts(&["Fold2/test.txt", "Fold1/test.txt", "Fold1/train.txt"]).unwrap();
        assert_eq!(found, ["Fold1/test", "Fold2/test"]);
        assert_eq!(parts(&["vali.txt", "test.txt.gz", "train.txt"]).unwrap(), ["train", "vali", "test"]);
        let error = parts(&["data.csv"]).unwrap_err();
        assert!(error.to_string().contains("no parts of a LETOR dataset"), "{error}");
    }

    #[test]
    fn the_first_fold_is_that_of_letor() {
        let fold = |files: &[&str]| {
            [FoldRole::Train, FoldRole::Valid, FoldRole::Test]
                .map(|role| in_folder(files, |folder| role.files_in(folder)).unwrap().join(","))
        };
        let five = ["S5.txt", "S1.txt", "S2.txt", "S3.txt.gz", "S4.txt"];
        assert_eq!(fold(&five), ["S1.txt,S2.txt,S3.txt.gz", "S4.txt", "S5.txt"]);
        assert_eq!(fold(&five[1..]), ["S1.txt,S2.txt", "S3.txt.gz", "S4.txt"]);
        let copies =
            ["S1.txt.gz", "S1.txt", "S1.txt.md5", "S2.txt.zst", "S2.txt.bak", "S3.txt", "S4.txt.md5"];
        assert_eq!(fold(&copies), ["S1.txt", "S2.txt.zst", "S3.txt"]);
        let files = ["Fold2/train.txt", "Fold1/train.txt", "Fold1/vali.txt", "Fold1/test.txt.gz"];
        assert_eq!(fold(&files), ["Fold1/train.txt", "Fold1/vali.txt", "Fold1/test.txt.gz"]);
        assert_eq!(fold(&["test.txt", "train.txt", "valid.txt"]), ["train.txt", "valid.txt", "test.txt"]);
        for files in [&["S1.txt", "S2.txt"][..], &["Fold1/test.txt"], &["data.csv"]] {
            let error = in_folder(files, |folder| FoldRole::Train.files_in(folder)).unwrap_err();
            assert!(error.to_string().contains("no first fold of a LETOR dataset"), "{error}");
        }
    }
}
