// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Tests the properties of each driver.

use crate::rust::model::driver::{
    id,
    DriverProperties, //
};

/// Every driver id that Linux 7.2 defines, and some that it does not.
const IDS: core::ops::Range<u32> = 0..64;

/// Checks that a property holds for the drivers with these ids, and for no others.
fn exactly(ids: &[u32], is_so: impl Fn(DriverProperties) -> bool) {
    for id in IDS.chain([u32::MAX]) {
        assert_eq!(
            is_so(DriverProperties::from_id(id)),
            ids.contains(&id),
            "driver {id}"
        );
    }
}

#[test]
fn only_reviewed_drivers_register_process_memory() {
    let ids = [
        id::MLX5,
        id::MLX4,
        id::CXGB4,
        id::BNXT_RE,
        id::OCRDMA,
        id::VMW_PVRDMA,
        id::QEDR,
        id::RXE,
        id::HFI1,
        id::SIW,
        id::ERDMA,
        id::IONIC,
    ];
    exactly(&ids, |driver| driver.registers_user_memory);
}

#[test]
fn only_drivers_that_check_access_rights_are_unrestricted() {
    let ids = [
        id::MLX5,
        id::MLX4,
        id::CXGB4,
        id::MTHCA,
        id::BNXT_RE,
        id::OCRDMA,
        id::IRDMA,
        id::VMW_PVRDMA,
        id::QEDR,
        id::HNS,
        id::RXE,
        id::ERDMA,
        id::IONIC,
    ];
    exactly(&ids, |driver| driver.checks_peers);
}

#[test]
fn only_drivers_with_exact_flushes_get_unsignalled_requests() {
    let ids = [id::MLX5, id::MLX4, id::MTHCA, id::HNS, id::RXE, id::HFI1];
    exactly(&ids, |driver| driver.allows_unsignalled);
}

#[test]
fn only_soft_roce_is_known_to_lose_receives() {
    exactly(&[id::RXE], |driver| driver.loses_receives);
}

#[test]
fn only_soft_roce_is_known_to_retry_for_ever() {
    exactly(&[id::RXE], |driver| driver.has_endless_retries);
}

#[test]
fn a_process_has_no_receives_where_a_failure_is_delayed() {
    for id in 0..64 {
        let driver = DriverProperties::from_id(id);
        assert!(
            driver.may_fail_amid_connect || !driver.registers_user_memory,
            "driver {id}"
        );
    }
    assert!(!DriverProperties::from_id(id::IRDMA).may_fail_amid_connect);
}

#[test]
fn polls_may_use_the_queue_pairs_of_qedr_and_of_unknown_drivers() {
    let harmless = [
        id::MLX5,
        id::MLX4,
        id::CXGB4,
        id::MTHCA,
        id::BNXT_RE,
        id::OCRDMA,
        id::IRDMA,
        id::VMW_PVRDMA,
        id::HNS,
        id::RXE,
        id::HFI1,
        id::SIW,
        id::ERDMA,
        id::IONIC,
    ];
    exactly(&harmless, |driver| !driver.polls_use_qps);
}

#[test]
fn regions_are_no_longer_than_the_driver_supports() {
    let rxe = DriverProperties::from_id(id::RXE);
    assert!(rxe.can_register(1 << 18));
    assert!(!rxe.can_register((1 << 18) + 1));
    assert_eq!(rxe.max_region(4096), (1 << 30) - 4096);
    assert!(DriverProperties::from_id(id::MLX5).can_register(u64::MAX));
    assert_eq!(
        DriverProperties::from_id(id::MLX5).max_region(4096),
        u64::MAX
    );
    // With 8 bytes for each chunk of pages and a header, the array is smaller than 4 MiB.
    assert_eq!(
        DriverProperties::from_id(id::SIW).max_region_pages / 512 * 8,
        2 << 20
    );
    assert_eq!(
        DriverProperties::from_id(id::HFI1).max_region_pages / 256 * 8,
        2 << 20
    );
}

#[test]
fn fast_regions_are_no_longer_than_device_and_driver_support() {
    let pages = |id, pages| DriverProperties::from_id(id).max_fast_region_pages(pages);
    assert_eq!(pages(id::MLX5, u32::MAX), u32::MAX);
    assert_eq!(pages(id::MLX5, 0), 0);
    assert_eq!(pages(id::IONIC, u32::MAX), 1 << 19);
    assert_eq!(pages(id::ERDMA, u32::MAX), 1 << 19);
    assert_eq!(pages(id::IONIC, 1 << 19), 1 << 19);
    assert_eq!(pages(id::IONIC, 256), 256);
    assert_eq!(pages(id::RXE, 512), 512);
    // 8 bytes for each page, as the largest allocation of 4 MiB.
    assert_eq!(
        DriverProperties::from_id(id::IONIC).max_region_pages * 8,
        4 << 20
    );
}

#[test]
fn drivers_that_use_the_address_in_the_process_register_at_no_other() {
    let reviewed = [
        id::MLX5,
        id::CXGB4,
        id::MTHCA,
        id::BNXT_RE,
        id::IRDMA,
        id::OCRDMA,
        id::QEDR,
        id::HNS,
        id::RXE,
        id::ERDMA,
        id::IONIC,
    ];
    exactly(&reviewed, |driver| driver.rebases_user_regions);
}

#[test]
fn drivers_that_take_the_address_for_the_devices_have_no_fast_regions() {
    let reviewed = [
        id::MLX5,
        id::MLX4,
        id::CXGB4,
        id::MTHCA,
        id::BNXT_RE,
        id::IRDMA,
        id::VMW_PVRDMA,
        id::QEDR,
        id::HNS,
        id::RXE,
        id::HFI1,
        id::SIW,
        id::ERDMA,
        id::IONIC,
    ];
    exactly(&reviewed, |driver| driver.rebases_fast_regions);
    assert_eq!(
        DriverProperties::from_id(id::OCRDMA).max_fast_region_pages(512),
        0
    );
}
