// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Test data. Both sides compute them from a seed, so that every byte can be checked.

/// Returns the eight bytes at word `index` of the pattern of `seed` (splitmix64).
fn word(seed: u64, index: u64) -> [u8; 8] {
    let mut z = seed.wrapping_add(index.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (z ^ (z >> 31)).to_le_bytes()
}

/// Returns `length` bytes of the pattern of `seed`.
pub fn bytes(seed: u64, length: usize) -> Vec<u8> {
    let mut pattern: Vec<u8> = (0..length.div_ceil(8) as u64).flat_map(|i| word(seed, i)).collect();
    pattern.truncate(length);
    pattern
}

/// Returns the index of the first byte that differs from the pattern, if any.
pub fn first_wrong(seed: u64, bytes: &[u8]) -> Option<usize> {
    bytes.chunks(8).enumerate().find_map(|(index, chunk)| {
        let right = word(seed, index as u64);
        let wrong = chunk.iter().zip(right).position(|(byte, right)| *byte != right)?;
        Some(index * 8 + wrong)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_wrong_byte_is_found_wherever_it_is() {
        for length in [0, 1, 7, 8, 9, 100] {
            let right = bytes(42, length);
            assert_eq!(first_wrong(42, &right), None);
            for at in 0..length {
                let mut wrong = right.clone();
                wrong[at] ^= 0x40;
                assert_eq!(first_wrong(42, &wrong), Some(at));
            }
        }
        assert_ne!(bytes(1, 64), bytes(2, 64));
    }
}
