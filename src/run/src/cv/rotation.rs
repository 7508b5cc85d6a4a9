//! Which parts a fold trains on, validates on and is tested on, rotated as LETOR does: of S1 to S5 the
//! first fold trains on S1, S2, S3, validates on S4 and is tested on S5, the second starts with S2.

use planetree_base::error::{Error, Result};

/// The parts of one fold, by their places.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rotation {
    /// Trained on, in this order.
    pub train: Vec<usize>,
    /// Validated on.
    pub valid: Option<usize>,
    /// Tested on.
    pub test: usize,
}

/// The folds over so many parts; without validation its part is trained on as well.
pub fn rotations(parts: usize, validate: bool) -> Result<Vec<Rotation>> {
    let held_back = 1 + usize::from(validate);
    if parts <= held_back {
        let (least, remedy) = match validate {
            true => (3, "use 3 folds or more, or --no-valid, which needs no part to validate on"),
            false => (2, "use 2 folds or more"),
        };
        return Err(Error::usage(
            format_args!("{parts} folds are too few: a fold needs {least} parts of the data at least"),
            remedy,
        ));
    }
    let fold = |first: usize| {
        let part = |place: usize| (first + place) % parts;
        Rotation {
            train: (0..parts - held_back).map(part).collect(),
            valid: validate.then(|| part(parts - 2)),
            test: part(parts - 1),
        }
    };
    Ok((0..parts).map(fold).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_parts_rotate_as_those_of_letor() {
        let folds = rotations(5, true).unwrap();
        let of = |train: &[usize], valid, test| Rotation { train: train.to_vec(), valid: Some(valid), test };
        let expected = [
            of(&[0, 1, 2], 3, 4),
            of(&[1, 2, 3], 4, 0),
            of(&[2, 3, 4], 0, 1),
            of(&[3, 4, 0], 1, 2),
            of(&[4, 0, 1], 2, 3),
        ];
        assert_eq!(folds, expected);
    }

    #[test]
    fn every_part_is_tested_once_and_never_trained_on_there() {
        for (parts, validate) in [(2, false), (3, true), (3, false), (10, true)] {
            let folds = rotations(parts, validate).unwrap();
            let mut tested: Vec<usize> = folds.iter().map(|fold| fold.test).collect();
            tested.sort_unstable();
            assert_eq!(tested, (0..parts).collect::<Vec<_>>());
            for fold in folds {
                let mut all = fold.train.clone();
                all.extend(fold.valid);
                all.push(fold.test);
                all.sort_unstable();
                assert_eq!(all, (0..parts).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn too_few_parts_are_refused() {
        for (parts, validate) in [(0, true), (2, true), (1, false)] {
            assert_eq!(rotations(parts, validate).unwrap_err().exit_code(), 2, "{parts}");
        }
    }
}
