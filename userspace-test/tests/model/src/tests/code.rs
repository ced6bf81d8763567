// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Compares return codes with numbers from a compiled `dat_error.h`.

use crate::rust::model::code::{
    self,
    Arg,
    DatError,
    DatResult,
    Kind,
    Subtype, //
};

/// Kinds in the order of `DAT_RETURN_TYPE`, each with its number there.
const KINDS: [(Kind, u32); 24] = [
    (Kind::Abort, 0x0001_0000),
    (Kind::ConnQualInUse, 0x0002_0000),
    (Kind::InsufficientResources, 0x0003_0000),
    (Kind::InternalError, 0x0004_0000),
    (Kind::InvalidHandle, 0x0005_0000),
    (Kind::InvalidParameter, 0x0006_0000),
    (Kind::InvalidState, 0x0007_0000),
    (Kind::LengthError, 0x0008_0000),
    (Kind::ModelNotSupported, 0x0009_0000),
    (Kind::ProviderNotFound, 0x000a_0000),
    (Kind::PrivilegesViolation, 0x000b_0000),
    (Kind::ProtectionViolation, 0x000c_0000),
    (Kind::QueueEmpty, 0x000d_0000),
    (Kind::QueueFull, 0x000e_0000),
    (Kind::TimeoutExpired, 0x000f_0000),
    (Kind::ProviderAlreadyRegistered, 0x0010_0000),
    (Kind::ProviderInUse, 0x0011_0000),
    (Kind::InvalidAddress, 0x0012_0000),
    (Kind::InterruptedCall, 0x0013_0000),
    (Kind::ConnQualUnavailable, 0x0014_0000),
    (Kind::ReservedLmr, 0x0015_0000),
    (Kind::PortInUse, 0x0016_0000),
    (Kind::CommNotSupported, 0x0017_0000),
    (Kind::NotImplemented, 0x3fff_0000),
];

#[test]
fn every_kind_has_its_number_and_the_error_class() {
    for (kind, number) in KINDS {
        assert_eq!(
            DatError::from(kind).code(&[]),
            0x8000_0000 | number,
            "{kind:?}"
        );
    }
}

#[test]
fn subtypes_have_their_numbers() {
    // The first and the last of every group: a surplus or missing entry shifts the numbers after
    // it.
    for (subtype, number) in [
        (Subtype::Unspecified, 0),
        (Subtype::Interrupted, 1),
        (Subtype::ResourceMemory, 2),
        (Subtype::ResourceDevice, 3),
        (Subtype::ResourceSrq, 10),
        (Subtype::InvalidHandleIa, 11),
        (Subtype::InvalidHandleEp, 12),
        (Subtype::InvalidHandleEvdRecv, 22),
        (Subtype::InvalidHandleCsp, 26),
        (Subtype::InvalidHandle1, 27),
        (Subtype::InvalidHandle10, 36),
        (Subtype::InvalidArg1, 37),
        (Subtype::InvalidArg10, 46),
        (Subtype::InvalidStateEpUnconnected, 47),
        (Subtype::InvalidStateEpNotready, 57),
        (Subtype::InvalidStateEpUnconftentative, 66),
        (Subtype::InvalidStateCnoInUse, 67),
        (Subtype::InvalidStateEvdWaiter, 78),
        (Subtype::InvalidStateIaInUse, 80),
        (Subtype::InvalidStateSrqShutdown, 88),
        (Subtype::PrivilegesRead, 89),
        (Subtype::PrivilegesRdmaWrite, 92),
        (Subtype::ProtectionRead, 93),
        (Subtype::ProtectionRdmaWrite, 96),
        (Subtype::InvalidAddressUnsupported, 97),
        (Subtype::InvalidAddressMalformed, 99),
        (Subtype::NameNotRegistered, 100),
        (Subtype::ThreadSafetyNotFound, 103),
    ] {
        let code = DatError::new(Kind::InvalidState, subtype).code(&[]);
        assert_eq!(code, 0x8007_0000 | number, "{subtype:?}");
    }
}

#[test]
fn an_invalid_parameter_names_its_position() {
    let error = DatError::Invalid(Arg::Flags);
    let mut order: Vec<&[Arg]> = Vec::new();
    for n in 1..=12 {
        order.push(&[Arg::Backlog, Arg::Flags]);
        let subtype = if n <= 10 { 36 + n } else { 0 };
        assert_eq!(error.code(&order), 0x8006_0000 + subtype);
        order.pop();
        order.push(if n % 2 == 0 { &[] } else { &[Arg::Qlen] });
        assert_eq!(error.code(&order), 0x8006_0000);
    }
    assert_eq!(error.code(&[&[Arg::Flags], &[Arg::Flags]]), 0x8006_0025);
}

#[test]
fn an_error_has_a_type_and_a_small_size() {
    assert_eq!(DatError::memory().kind(), Kind::InsufficientResources);
    for arg in [Arg::Agent, Arg::Vector] {
        assert_eq!(DatError::Invalid(arg).kind(), Kind::InvalidParameter);
    }
    // Functions return it in a register.
    assert_eq!(size_of::<DatResult>(), 4);
    assert_eq!(size_of::<DatResult<u32>>(), 8);
}

#[test]
fn shorthands() {
    assert_eq!(DatError::memory().code(&[]), 0x8003_0002);
    assert_eq!(DatError::device().code(&[]), 0x8003_0003);
    assert_eq!(DatError::internal().code(&[]), 0x8004_0000);
}

/// Returns the names and the numbers that a header of kernel consumers defines.
fn defined(header: &'static str) -> impl Iterator<Item = (&'static str, u32)> {
    let number = |text: &str| {
        let text = text.trim_end_matches('u');
        text.strip_prefix("0x").map_or_else(
            || text.parse().ok(),
            |digits| u32::from_str_radix(digits, 16).ok(),
        )
    };
    header.lines().filter_map(move |line| {
        let mut words = line.strip_prefix("#define ")?.split_whitespace();
        Some((words.next()?, number(words.next()?)?))
    })
}

fn text(name: &std::ffi::CStr) -> &str {
    name.to_str().expect("ASCII")
}

#[test]
fn subtypes_have_the_names_and_numbers_of_the_header() {
    let header = include_str!("../../../../../include/rdma/kdat_subtypes.h");
    let names: Vec<_> = defined(header).collect();
    assert_eq!(names.len(), 104);
    assert_eq!(names[0], ("DAT_NO_SUBTYPE", 0));
    for (place, (name, number)) in names.into_iter().enumerate() {
        assert_eq!(number as usize, place);
        let found = code::names(0x8007_0000 | number).map(|names| text(names.1));
        assert_eq!(found, Some(if number == 0 { "" } else { name }));
    }
    assert_eq!(code::names(0x8007_0000 | 104), None);
    assert_eq!(code::names(0x8007_ffff), None);
}

#[test]
fn types_have_the_names_and_numbers_of_the_header() {
    let header = include_str!("../../../../../include/rdma/kdat/error.h");
    let (_, codes) = header.split_once("#define DAT_GET_SUBTYPE").expect("it");
    let names: Vec<_> = defined(codes).take(KINDS.len()).collect();
    for ((name, number), (kind, expected)) in names.into_iter().zip(KINDS) {
        assert_eq!(number, expected, "{name}");
        let found = code::names(DatError::from(kind).code(&[])).map(|names| text(names.0));
        assert_eq!(found, Some(name));
    }
    assert_eq!(code::names(0), Some((c"DAT_SUCCESS", c"")));
    assert_eq!(code::names(0x8000_0000), None);
    assert_eq!(code::names(0x8018_0000), None);
}
