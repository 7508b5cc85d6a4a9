//! Parses files of feature names.

use planetree_base::error::{Error, Result};
use planetree_data::ingest::check_feature_names;

/// Parses feature names, one per line. A name may be preceded by its index and white space. Indices start at 0 or 1 and
/// may be in any order. Further columns separated by tabs, as in XGBoost's feature maps, are ignored.
pub(crate) fn parse_names(text: &str, file: &str) -> Result<Vec<String>> {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let indexed: Option<Vec<(usize, &str)>> = lines
        .iter()
        .map(|line| {
            let (index, rest) = line.split_once(char::is_whitespace)?;
            let name = rest.trim_start().split('\t').next()?.trim();
            Some((index.parse().ok()?, name))
        })
        .collect();
    let mut names: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
    if let Some(mut indexed) = indexed {
        indexed.sort_by_key(|(index, _)| *index);
        let base = indexed.first().map_or(1, |(index, _)| *index);
        if base <= 1 && indexed.iter().enumerate().all(|(position, (index, _))| *index == base + position) {
            names = indexed.into_iter().map(|(_, name)| name.to_owned()).collect();
        }
    }
    if names.is_empty() {
        return Err(Error::place(file, "no feature names in this file", "write one name per line"));
    }
    check_feature_names(&names, file)?;
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_may_follow_an_index() {
        assert_eq!(
            parse_names("1 covered terms\n2\tstream length\n", "n").unwrap(),
            ["covered terms", "stream length"]
        );
        assert_eq!(parse_names("a\nb b\n", "n").unwrap(), ["a", "b b"]);
        assert_eq!(parse_names("2\tb\n\n1\ta\n", "n").unwrap(), ["a", "b"]);
        assert_eq!(parse_names("0\ta\tq\n1\tb\ti\n", "n").unwrap(), ["a", "b"]);
        assert!(parse_names("\n", "n").is_err());
        assert!(parse_names("a\na\n", "n").is_err());
    }
}
