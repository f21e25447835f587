//! A light stemmer for words in Cyrillic letters, by the endings of Russian: `файлами` and `файлов` become `файл`.

use std::borrow::Cow;

/// The fewest letters that a stem keeps.
const SHORTEST: usize = 3;

/// Endings of nouns, adjectives and verbs, without their hard and soft signs. `ё` is written `е`.
const ENDINGS: &str = "
    а ам ами ать ах ая е его ее ей ем ему ение ении ений ением ению ения ет еть ешь ев ею ем
    и ие ием ией ии ий им ими ить ит ишь их ия иях иям иями ию иев
    о ов ого ое ой ом ому ою ание ании аний анием анию ания ает ают айте ай ал ала али ало
    у ует уют уть ую ы ые ый ым ыми ых ь ью ю ют я яет яют яй яйте ял яла яли ям ями ять ях яя ян яние яния янию янием
    ил ила или ило ите";

/// Returns the stem of a word in lower case, if all its letters are Cyrillic.
pub(crate) fn stem_cyrillic(word: &str) -> Option<Cow<'_, str>> {
    if !word.chars().all(|c| matches!(c, '\u{0400}'..='\u{04FF}')) {
        return None;
    }
    let word =
        if word.contains('ё') { word.replace('ё', "е").into() } else { Cow::Borrowed(word) };
    let letters = word.chars().count();
    let fits =
        |ending: &&str| letters >= ending.chars().count() + SHORTEST && word.ends_with(*ending);
    let longest = ENDINGS.split_whitespace().filter(fits).map(str::len).max();
    let end = word.len() - longest.unwrap_or_default();
    Some(match word {
        Cow::Borrowed(word) => Cow::Borrowed(&word[..end]),
        Cow::Owned(mut word) => {
            word.truncate(end);
            Cow::Owned(word)
        }
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_forms_of_a_word_have_one_stem() {
        let forms = [
            ("файл", "файл файла файлы файлов файлами файлам файле"),
            ("задач", "задача задачи задачу задач задачами задаче"),
            ("погод", "погода погоды погоду погодой погоде"),
            ("удал", "удалить удаление удаления удали удалит удаляет удалять удалил"),
            ("созд", "создать создание создания создает создаёт создают создай"),
            ("репозитор", "репозиторий репозитория репозитории репозиториев репозиторию"),
            ("пользовател", "пользователь пользователя пользователи пользователей пользователям"),
            ("нов", "новый новая новое новые новых нового"),
            ("сообщ", "сообщение сообщения сообщению сообщений сообщением"),
        ];
        for (stem, words) in forms {
            for word in words.split_whitespace() {
                assert_eq!(stem_cyrillic(word).as_deref(), Some(stem), "{word}");
            }
        }
    }

    #[test]
    fn short_words_and_words_of_other_letters_stay() {
        for word in ["дом", "мы", "и"] {
            assert_eq!(stem_cyrillic(word).as_deref(), Some(word));
        }
        for word in ["file", "größe", "検索", "файл1"] {
            assert_eq!(stem_cyrillic(word), None);
        }
    }

    proptest! {
        #[test]
        fn a_stem_is_not_longer_than_its_word_and_never_empty(word in "[а-яё]{1,20}") {
            let stem = stem_cyrillic(&word).unwrap();
            prop_assert!(!stem.is_empty() && stem.len() <= word.len());
        }
    }
}
