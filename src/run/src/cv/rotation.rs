//! Assigns the parts of the data to folds, in the same rotation as the LETOR datasets. With the parts S1 to S5, the
//! first fold trains on S1, S2 and S3, validates on S4 and tests on S5. The second fold trains on S2, S3 and S4,
//! validates on S5 and tests on S1.

use planetree_base::error::{Error, Result};

/// The parts of the data that one fold uses, as indices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rotation {
    /// Parts to train on, in order.
    pub train: Vec<usize>,
    /// Part to validate on, if any.
    pub valid: Option<usize>,
    /// Part to test on.
    pub test: usize,
}

/// Returns the folds for a number of parts. If `validate` is `false`, the part that would be used for validation is
/// used for training.
pub fn rotations(parts: usize, validate: bool) -> Result<Vec<Rotation>> {
    let held_back = 1 + usize::from(validate);
    if parts <= held_back {
        let (minimum, remedy) = match validate {
            true => (3, "use at least 3 folds, or --no-valid"),
            false => (2, "use at least 2 folds"),
        };
        return Err(Error::usage(
            format_args!("{parts} folds are too few: at least {minimum} are needed"),
            remedy,
        ));
    }
    let fold = |first: usize| {
        let part = |offset: usize| (first + offset) % parts;
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
    fn five_parts_rotate_as_in_letor() {
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
    fn every_part_is_tested_once_and_not_trained_on_in_that_fold() {
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
    fn too_few_parts_are_rejected() {
        for (parts, validate) in [(0, true), (2, true), (1, false)] {
            assert_eq!(rotations(parts, validate).unwrap_err().exit_code(), 2, "{parts}");
        }
    }
}
