//! Look-alike characters.

use crate::visible_text::hidden_character;

/// Latin letters, and the letters of other scripts that look like them in most typefaces.
const ALIKE: &[(char, &str)] = &[
    ('a', "аɑα"),
    ('b', "ЬƄ"),
    ('c', "сϲⅽ"),
    ('d', "ԁⅾ"),
    ('e', "еҽ"),
    ('g', "ɡց"),
    ('h', "һհ"),
    ('i', "іιɩⅰı"),
    ('j', "јϳ"),
    ('k', "κк"),
    ('l', "ӏⅼǀ"),
    ('m', "ⅿм"),
    ('n', "ոп"),
    ('o', "оοσօ०"),
    ('p', "рρ"),
    ('q', "ԛգ"),
    ('r', "гᴦ"),
    ('s', "ѕꜱ"),
    ('t', "тτ"),
    ('u', "υսʋ"),
    ('v', "ѵνⅴ"),
    ('w', "ԝѡա"),
    ('x', "хχⅹ"),
    ('y', "уγү"),
    ('z', "ᴢ"),
    ('A', "АΑ"),
    ('B', "ВΒ"),
    ('C', "СϹ"),
    ('E', "ЕΕ"),
    ('H', "НΗ"),
    ('I', "ІΙӀ"),
    ('J', "Ј"),
    ('K', "КΚ"),
    ('M', "МΜ"),
    ('N', "Ν"),
    ('O', "ОΟ"),
    ('P', "РΡ"),
    ('S', "Ѕ"),
    ('T', "ТΤ"),
    ('X', "ХΧ"),
    ('Y', "УΥ"),
    ('Z', "Ζ"),
    ('_', "＿‗"),
    ('-', "‐‑‒–—−"),
    ('/', "∕⁄"),
    ('.', "․"),
];

/// Returns the ASCII character that this one looks like, or itself.
pub(crate) fn fold(c: char) -> char {
    if c.is_ascii() {
        return c;
    }
    // The wide forms of East Asian typography follow ASCII in its order.
    if let '\u{ff01}'..='\u{ff5e}' = c {
        return char::from_u32(u32::from(c) - 0xfee0).unwrap_or(c);
    }
    ALIKE.iter().find(|(_, others)| others.contains(c)).map_or(c, |(plain, _)| *plain)
}

/// Folds look-alike characters of a string into one: invisible characters are dropped, case is ignored,
/// and `0` is `o`, `1` and `i` are `l`.
///
/// It uses a small table of characters common in forged names, not all of Unicode.
///
/// ```
/// use consort_shape::look_alikes::skeleton;
///
/// assert_eq!(skeleton("rеаd_fiIe"), skeleton("read_file"));
/// assert_ne!(skeleton("read_file"), skeleton("read_files"));
/// ```
pub fn skeleton(text: &str) -> String {
    let shown = text.chars().filter(|c| hidden_character(*c).is_none());
    let plain = shown.flat_map(|c| match fold(c) {
        'I' | 'i' | '1' | '|' => 'l'.to_lowercase(),
        '0' => 'o'.to_lowercase(),
        c => c.to_lowercase(),
    });
    plain.collect()
}

/// Returns the first word that mixes Latin letters with look-alikes of another script.
pub(crate) fn mixed_scripts(text: &str) -> Option<(usize, usize)> {
    if text.is_ascii() {
        return None;
    }
    let inside = char::is_alphabetic;
    let mut from = 0;
    while let Some(at) = text[from..].find(inside) {
        let start = from + at;
        let length = text[start..].find(|c: char| !inside(c)).unwrap_or(text.len() - start);
        let word = &text[start..start + length];
        let latin = word.chars().any(|c| c.is_ascii_alphabetic());
        // Small Greek letters are symbols, as in `TNFα`; Turkish has an `i` without a dot.
        let usual = |c: char| c.is_ascii() || matches!(c, 'ı' | 'α'..='ω');
        let forged = word.chars().any(|c| !usual(c) && fold(c).is_ascii());
        if latin && forged {
            return Some((start, start + length));
        }
        from = start + length;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forged_names_have_the_skeleton_of_what_they_look_like() {
        for forged in
            ["rеad_file", "read_fi1e", "READ_FILE", "read\u{200b}_file", "ｒead_file", "read＿file"]
        {
            assert_eq!(skeleton(forged), skeleton("read_file"), "{forged}");
        }
        for other in ["read-file", "read_fle", "readfile"] {
            assert_ne!(skeleton(other), skeleton("read_file"), "{other}");
        }
    }

    #[test]
    fn a_word_of_two_scripts_is_found_and_one_of_another_script_is_not() {
        assert_eq!(mixed_scripts("the раth to it"), Some((4, 10)));
        assert_eq!(mixed_scripts("pаssword"), Some((0, 9)));
        for text in [
            "Привет, мир",
            "κόσμε",
            "Δx and μm",
            "café",
            "日本語text",
            "naïve über",
            "Akaryakıt",
            "TNFα",
            "2α",
            "α-helix",
        ] {
            assert_eq!(mixed_scripts(text), None, "{text}");
        }
    }
}
