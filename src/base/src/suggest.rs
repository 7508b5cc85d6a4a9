//! Suggests similar names for a misspelt name.

/// Returns up to three of the names that are most similar to `written`, or none if no name is similar enough.
pub fn nearest<'n>(written: &str, names: impl IntoIterator<Item = &'n str>) -> Vec<&'n str> {
    const MOST: usize = 3;
    let written = plain(written);
    // At most a third of the letters may differ, because less similar names would be misleading suggestions.
    let mut least = written.len().div_ceil(3).min(4);
    let mut found = Vec::new();
    for name in names {
        let distance = distance(&written, &plain(name));
        if distance < least {
            found.clear();
            least = distance;
        }
        if distance == least && found.len() < MOST && !found.contains(&name) {
            found.push(name);
        }
    }
    found
}

/// Formats suggestions as a question such as "did you mean a or b?". Returns `otherwise` if there are none.
pub fn did_you_mean(suggestions: &[&str], otherwise: &str) -> String {
    match suggestions {
        [] => otherwise.to_owned(),
        [one] => format!("did you mean {one}?"),
        [most @ .., last] => format!("did you mean {} or {last}?", most.join(", ")),
    }
}

/// Converts a name to lower case and replaces `-` by `_`, so that spelling variants compare equal.
fn plain(name: &str) -> Vec<char> {
    name.chars().map(|letter| if letter == '-' { '_' } else { letter.to_ascii_lowercase() }).collect()
}

/// Computes the edit distance with insertions, deletions, substitutions and transpositions (optimal string
/// alignment).
fn distance(left: &[char], right: &[char]) -> usize {
    let mut before_previous: Vec<usize> = Vec::new();
    let mut previous: Vec<usize> = (0..=right.len()).collect();
    for (i, from) in left.iter().enumerate() {
        let mut current = vec![i + 1];
        for (j, to) in right.iter().enumerate() {
            let changed = previous[j] + usize::from(from != to);
            let mut least = changed.min(previous[j + 1] + 1).min(current[j] + 1);
            if i > 0 && j > 0 && *from == right[j - 1] && left[i - 1] == *to {
                least = least.min(before_previous[j - 1] + 1);
            }
            current.push(least);
        }
        before_previous = std::mem::replace(&mut previous, current);
    }
    previous[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_count_single_slips() {
        let slips = |left: &str, right: &str| distance(&plain(left), &plain(right));
        assert_eq!(slips("rate", "rate"), 0);
        assert_eq!(slips("Learning-Rate", "learning_rate"), 0);
        assert_eq!(slips("learnig_rate", "learning_rate"), 1);
        assert_eq!(slips("laerning", "learning"), 1);
        assert_eq!(slips("", "abc"), 3);
        assert_eq!(slips("abc", ""), 3);
        assert_eq!(slips("kitten", "sitting"), 3);
    }

    #[test]
    fn only_what_is_near_is_suggested() {
        let names = ["ndcg", "err", "rmse"];
        assert_eq!(nearest("ndgc", names), ["ndcg"]);
        assert!(nearest("accuracy", names).is_empty());
        assert!(nearest("", names).is_empty());
        assert_eq!(nearest("ab", ["aa", "bb", "cc", "bb"]), ["aa", "bb"]);
    }

    #[test]
    fn suggestions_read_as_a_question() {
        assert_eq!(did_you_mean(&[], "see --help"), "see --help");
        assert_eq!(did_you_mean(&["a"], ""), "did you mean a?");
        assert_eq!(did_you_mean(&["a", "b", "c"], ""), "did you mean a, b or c?");
    }
}
