//! Parses and formats sizes and counts, such as `512MiB`, `2g` and `1,000,000`.

/// Parses a size such as `512MiB`, `2g` or `1000000` and returns the number of bytes. All units are powers of 1024.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let digits = text.find(|letter: char| !(letter.is_ascii_digit() || letter == '.')).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit = unit.trim().to_ascii_lowercase();
    let factor: u64 = match unit.as_str() {
        "" | "b" => 1,
        "k" | "ki" | "kb" | "kib" => 1 << 10,
        "m" | "mi" | "mb" | "mib" => 1 << 20,
        "g" | "gi" | "gb" | "gib" => 1 << 30,
        "t" | "ti" | "tb" | "tib" => 1 << 40,
        _ => return Err(format!("{text:?} is not a size; write for example 512MiB or 2GiB")),
    };
    match number.parse::<f64>() {
        Ok(number) if number.is_finite() => Ok((number * factor as f64) as u64),
        _ => Err(format!("{text:?} is not a size; write for example 512MiB or 2GiB")),
    }
}

/// Formats a number of bytes with a binary unit, such as `1.5 KiB`.
pub fn shown_size(bytes: u64) -> String {
    let mut size = bytes as f64;
    let mut unit = "B";
    for next in ["KiB", "MiB", "GiB", "TiB"] {
        if size < 1024.0 {
            break;
        }
        size /= 1024.0;
        unit = next;
    }
    if unit == "B" { format!("{bytes} B") } else { format!("{size:.1} {unit}") }
}

/// Formats a count with thousands separators, such as `1,234,567`.
pub fn shown_count(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats a count with its noun, such as `1 tree` or `1,200 trees`.
pub fn counted(count: u64, one: &str, several: &str) -> String {
    format!("{} {}", shown_count(count), if count == 1 { one } else { several })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_and_shown() {
        assert_eq!(parse_size("512MiB"), Ok(512 << 20));
        assert_eq!(parse_size("1.5g"), Ok(3 << 29));
        // As Kubernetes writes them.
        assert_eq!(parse_size("256Mi"), parse_size("256MiB"));
        assert_eq!(
            (parse_size("8Ki"), parse_size("2Gi"), parse_size("1Ti")),
            (Ok(8 << 10), Ok(2 << 30), Ok(1 << 40))
        );
        assert_eq!(parse_size("42"), Ok(42));
        assert!(parse_size("many").is_err());
        assert_eq!(shown_size(1536), "1.5 KiB");
        assert_eq!(shown_count(1_234_567), "1,234,567");
        assert_eq!(shown_count(12), "12");
    }
}
