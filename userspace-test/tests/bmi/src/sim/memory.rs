// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Buffers of operations, as lists of fragments.

/// Buffers of one operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Buffers {
    pub fragments: Vec<Vec<u8>>,
}

impl Buffers {
    /// Divides bytes into about `count` fragments of different lengths.
    pub fn divide(bytes: &[u8], count: usize) -> Self {
        let count = count.clamp(1, bytes.len().max(1));
        let mut fragments = Vec::new();
        let mut rest = bytes;
        for left in (2..=count).rev() {
            let share = rest.len() / left;
            let length = (share + left % 3).min(rest.len() - (left - 1));
            let (first, others) = rest.split_at(length.max(1));
            fragments.push(first.to_vec());
            rest = others;
        }
        fragments.push(rest.to_vec());
        Self { fragments }
    }

    /// Returns the lengths of the fragments.
    pub fn lengths(&self) -> Vec<u64> {
        self.fragments
            .iter()
            .map(|part| part.len() as u64)
            .collect()
    }

    /// Returns all bytes.
    pub fn bytes(&self) -> Vec<u8> {
        self.fragments.concat()
    }

    /// Reads bytes of a message.
    pub fn read(&self, offset: usize, length: usize) -> Vec<u8> {
        self.bytes()[offset..offset + length].to_vec()
    }

    /// Writes bytes of a message.
    pub fn write(&mut self, mut offset: usize, mut bytes: &[u8]) {
        for part in &mut self.fragments {
            if offset >= part.len() {
                offset -= part.len();
                continue;
            }
            let count = bytes.len().min(part.len() - offset);
            part[offset..offset + count].copy_from_slice(&bytes[..count]);
            bytes = &bytes[count..];
            offset = 0;
        }
        assert!(bytes.is_empty(), "a write beyond the end of the buffers");
    }
}
