//! Plain rankings for comparison: BM25 over one bag of words, or over fields.

use std::borrow::Cow;
use std::collections::HashMap;

use consort_search::{ToolDocument, is_stop_word, stem};

/// The usual constant of BM25.
const K: f64 = 1.2;

/// Kind of ranking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Name, server and description, unchanged.
    Plain,
    /// The same and parameters, with identifiers split.
    Split,
    /// Weighted fields, with identifiers split, stop words removed, and stemming.
    Fields,
}

impl Kind {
    pub(super) const ALL: [Self; 3] = [Self::Plain, Self::Split, Self::Fields];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Plain => "bm25",
            Self::Split => "bm25, split",
            Self::Fields => "bm25f, stems",
        }
    }

    /// The texts of a document, each with its weight and length normalization.
    fn fields(self, document: &ToolDocument) -> Vec<(String, f64, f64)> {
        let ToolDocument { name, server, description, .. } = document;
        let (parameters, details) = (document.parameters.join(" "), document.details.join(" "));
        let bag = format!("{name} {server} {description}");
        match self {
            Self::Plain => vec![(bag, 1.0, 0.75)],
            Self::Split => vec![(format!("{bag} {parameters} {details}"), 1.0, 0.75)],
            Self::Fields => vec![
                (name.clone(), 3.0, 0.3),
                (server.clone(), 1.0, 0.75),
                (description.clone(), 1.0, 0.75),
                (parameters, 0.5, 0.75),
                (details, 0.25, 0.75),
            ],
        }
    }

    fn words(self, text: &str) -> Vec<String> {
        let mut spaced = String::new();
        let mut lower = false;
        for c in text.chars() {
            let part = c.is_alphanumeric() || c == '_' && self == Self::Plain;
            if !part || self != Self::Plain && c.is_uppercase() && lower {
                spaced.push(' ');
            }
            if part {
                spaced.extend(c.to_lowercase());
            }
            lower = c.is_lowercase();
        }
        let words = spaced.split_whitespace();
        match self {
            Self::Fields => {
                words.filter(|word| !is_stop_word(word)).map(stem).map(Cow::into_owned).collect()
            }
            _ => words.map(str::to_owned).collect(),
        }
    }
}

/// Documents ranked in one of these ways.
pub(super) struct Baseline {
    kind: Kind,
    documents: usize,
    /// Postings by word: the documents that contain it, with its score.
    postings: HashMap<String, Vec<(usize, f64)>>,
}

impl Baseline {
    pub(super) fn new(kind: Kind, documents: impl Iterator<Item = ToolDocument>) -> Self {
        let texts: Vec<Vec<(Vec<String>, f64, f64)>> = documents
            .map(|document| {
                let fields = kind.fields(&document).into_iter();
                fields.map(|(text, weight, b)| (kind.words(&text), weight, b)).collect()
            })
            .collect();
        let mut lengths: Vec<f64> = Vec::new();
        for fields in &texts {
            lengths.resize(fields.len(), 0.0);
            for (length, (words, ..)) in lengths.iter_mut().zip(fields) {
                *length += number(words.len());
            }
        }
        let mut postings: HashMap<String, Vec<(usize, f64)>> = HashMap::new();
        for (at, fields) in texts.iter().enumerate() {
            let mut amounts: HashMap<&str, f64> = HashMap::new();
            for ((words, weight, b), length) in fields.iter().zip(&lengths) {
                let relative = number(words.len()) * number(texts.len()) / length.max(1.0);
                for word in words {
                    *amounts.entry(word).or_default() += weight / (1.0 - b + b * relative);
                }
            }
            for (word, amount) in amounts {
                let says = amount * (K + 1.0) / (amount + K);
                postings.entry(word.to_owned()).or_default().push((at, says));
            }
        }
        Self { kind, documents: texts.len(), postings }
    }

    /// The best documents, best first; ties in order.
    pub(super) fn search(&self, query: &str, hits: usize) -> Vec<usize> {
        let mut scores = vec![0.0; self.documents];
        let mut words = self.kind.words(query);
        words.sort_unstable();
        words.dedup();
        for postings in words.iter().filter_map(|word| self.postings.get(word)) {
            let having = number(postings.len());
            let rarity = ((number(self.documents) - having + 0.5) / (having + 0.5)).ln_1p();
            for (at, says) in postings {
                scores[*at] += rarity * says;
            }
        }
        let mut found: Vec<usize> = (0..scores.len()).filter(|&at| scores[at] > 0.0).collect();
        found.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]));
        found.truncate(hits);
        found
    }
}

fn number(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_way_sees_the_words_it_should() {
        let text = "the getUsers of git_hub";
        assert_eq!(Kind::Plain.words(text), ["the", "getusers", "of", "git_hub"]);
        assert_eq!(Kind::Split.words(text), ["the", "get", "users", "of", "git", "hub"]);
        assert_eq!(Kind::Fields.words(text), ["get", "user", "git", "hub"]);
    }

    #[test]
    fn the_rarer_word_decides() {
        let document =
            |name: &str| ToolDocument { name: name.to_owned(), ..ToolDocument::default() };
        let documents = ["send mail", "send fax", "send mail now"].map(document);
        for kind in Kind::ALL {
            let baseline = Baseline::new(kind, documents.iter().cloned());
            assert_eq!(baseline.search("send a fax", 10), [1, 0, 2], "{kind:?}");
            assert_eq!(baseline.search("send a fax", 1), [1]);
            assert!(baseline.search("dance", 10).is_empty());
        }
    }
}
