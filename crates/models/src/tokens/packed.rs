//! Packed vocabularies: each token as the two tokens of lower rank that it consists of.

/// Tokens of one byte, which come first.
const ALPHABET: usize = 256;

/// Every token of a vocabulary, in the order of ranks.
#[derive(Debug)]
pub(super) struct TokenList {
    /// The bytes of all tokens.
    bytes: Vec<u8>,
    /// Start of each token, and the end of the last one.
    starts: Vec<u32>,
}

impl TokenList {
    /// Unpacks a vocabulary: the tokens of one byte, the number of tokens, then two ranks for each other token.
    pub(super) fn unpack(packed: &[u8]) -> Self {
        let (bytes, packed) = packed.split_at(ALPHABET);
        let (count, packed) = packed.split_at(4);
        let count = u32::from_le_bytes(count.try_into().expect("it has four bytes")) as usize;
        let mut tokens = Self { bytes: bytes.to_vec(), starts: (0..=256).collect() };
        tokens.starts.reserve(count - ALPHABET);
        let mut bits = BitReader { bytes: packed, word: 0, width: 0 };
        for _ in ALPHABET..count {
            for _half in 0..2 {
                let part = tokens.range(bits.rank());
                tokens.bytes.extend_from_within(part);
            }
            let end = u32::try_from(tokens.bytes.len()).expect("a vocabulary has a few megabytes");
            tokens.starts.push(end);
        }
        tokens
    }

    /// Number of tokens.
    pub(super) fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// The token of a rank.
    pub(super) fn token(&self, rank: u32) -> &[u8] {
        &self.bytes[self.range(rank)]
    }

    /// All tokens, in the order of ranks.
    pub(super) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.starts.array_windows().map(|&[start, end]| &self.bytes[start as usize..end as usize])
    }

    fn range(&self, rank: u32) -> std::ops::Range<usize> {
        let rank = rank as usize;
        self.starts[rank] as usize..self.starts[rank + 1] as usize
    }
}

/// Reads ranks from bits, the lowest bit of a byte first.
struct BitReader<'a> {
    bytes: &'a [u8],
    /// Bits that are read and not used yet.
    word: u64,
    /// Number of these bits.
    width: u32,
}

impl BitReader<'_> {
    /// A rank: four bits for its magnitude, then its bits below the highest one. Magnitude 0 is a rank of three bits.
    fn rank(&mut self) -> u32 {
        match self.take(4) {
            0 => self.take(3),
            magnitude => 1 << (magnitude + 2) | self.take(magnitude + 2),
        }
    }

    fn take(&mut self, width: u32) -> u32 {
        while self.width < width {
            let (&byte, rest) = self.bytes.split_first().expect("a vocabulary is whole");
            self.bytes = rest;
            self.word |= u64::from(byte) << self.width;
            self.width += 8;
        }
        let bits = self.word & ((1 << width) - 1);
        self.word >>= width;
        self.width -= width;
        u32::try_from(bits).expect("a rank has at most 18 bits")
    }
}
