//! Formats numbers as they appear in the files of well-known datasets.

/// Appends the decimal digits of a whole number.
pub(crate) fn push_whole(number: u64, out: &mut Vec<u8>) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    let mut rest = number;
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

/// Appends a number with six decimal places. If `trimmed` is set, trailing zeros are omitted, and so is the decimal
/// point of a whole number.
pub(crate) fn push_decimal(value: f64, trimmed: bool, out: &mut Vec<u8>) {
    let millionths = (value.abs() * 1e6).round() as u64;
    if value < 0.0 && millionths > 0 {
        out.push(b'-');
    }
    push_whole(millionths / 1_000_000, out);
    let mut rest = millionths % 1_000_000;
    if trimmed && rest == 0 {
        return;
    }
    let mut places = [b'0'; 6];
    for place in places.iter_mut().rev() {
        *place = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    let kept =
        if trimmed { places.iter().rposition(|digit| *digit != b'0').map_or(0, |last| last + 1) } else { 6 };
    out.push(b'.');
    out.extend_from_slice(&places[..kept]);
}

/// Returns the first `lines` lines of a text.
pub(crate) fn first_lines(text: &[u8], lines: u64) -> &[u8] {
    let mut ends = memchr::memchr_iter(b'\n', text).map(|end| end + 1);
    match lines.checked_sub(1) {
        Some(before) => &text[..ends.nth(before as usize).unwrap_or(text.len())],
        None => &text[..0],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_formatted_as_in_well_known_datasets() {
        let shown = |value: f64, trimmed: bool| {
            let mut out = Vec::new();
            push_decimal(value, trimmed, &mut out);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(shown(0.0, false), "0.000000");
        assert_eq!(shown(0.5, true), "0.5");
        assert_eq!(shown(-12.000001, true), "-12.000001");
        assert_eq!(shown(7.0, true), "7");
        assert_eq!(shown(-0.0000001, true), "0");
        assert_eq!(first_lines(b"a\nb\nc\n", 2), b"a\nb\n");
        assert_eq!(first_lines(b"a\n", 0), b"");
    }
}
