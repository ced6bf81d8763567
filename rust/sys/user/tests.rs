// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Tests of the accounts.

use super::*;

#[kunit_tests(kdapl_sys_user)]
mod cases {
    use super::*;

    /// Returns the caller's account on a device that does not exist, so that no other code uses it.
    fn account(is_limited: bool) -> Result<User> {
        let mut user = User::current()?.on(u32::MAX)?;
        user.is_limited = is_limited;
        Ok(user)
    }

    fn held(user: &User) -> u32 {
        user.account.ledger.held(Item::Domain)
    }

    #[test]
    fn a_charge_above_the_limit_is_refused_and_charges_nothing() -> Result {
        let user = account(true)?;
        assert!(user.take_within(Item::Domain, 2, 3).is_ok());
        assert!(user.take_within(Item::Domain, 2, 3) == Err(EAGAIN));
        assert_eq!(held(&user), 2);
        assert!(user.take_within(Item::Domain, 1, 3).is_ok());
        user.give_back(Item::Domain, 3);
        assert_eq!(held(&user), 0);
        Ok(())
    }

    #[test]
    fn an_unlimited_user_is_accounted() -> Result {
        let user = account(false)?;
        assert!(user.take_within(Item::Domain, 5, 1).is_ok());
        assert_eq!(held(&user), 5);
        user.give_back(Item::Domain, 5);
        Ok(())
    }

    #[test]
    fn dropped_charges_are_given_back() -> Result {
        let user = account(true)?;
        let hold = user.hold(Item::Domain, 2)?;
        let mut tally = VariableCharge::new(user.clone(), Item::Domain, 2);
        for _ in 0..3 {
            tally.take()?;
        }
        tally.give_back();
        assert_eq!(held(&user), 6);
        drop(hold);
        assert_eq!(held(&user), 4);
        drop(tally);
        assert_eq!(held(&user), 0);
        Ok(())
    }

    #[test]
    fn an_account_exists_as_long_as_a_reference() -> Result {
        let user = account(true)?;
        let other = user.clone();
        let key = user.account.key;
        drop(user);
        let found = User::find(key).ok_or(ENOENT)?;
        assert!(Arc::ptr_eq(&found, &other.account));
        // `find` has counted a reference.
        drop(User {
            account: found,
            is_limited: true,
        });
        drop(other);
        assert!(User::find(key).is_none());
        Ok(())
    }

    /// Returns the kilobytes that a user is charged for.
    fn memory(user: &User) -> u32 {
        user.account.ledger.held(Item::ModuleMemory)
    }

    #[test]
    fn an_array_is_charged_until_its_drop() -> Result {
        let user = account(true)?;
        let array = ChargedArray::filled(&user, 1025, GFP_KERNEL, || 0_u8)?;
        assert_eq!(memory(&user), 2);
        let empty = ChargedArray::<u8>::with_capacity(&user, 0, GFP_KERNEL)?;
        assert_eq!(memory(&user), 2);
        drop(empty);
        drop(array);
        assert_eq!(memory(&user), 0);
        Ok(())
    }

    #[test]
    fn an_array_that_grows_is_charged_for_its_capacity() -> Result {
        let user = account(true)?;
        let mut array = ChargedArray::<u64>::empty();
        for round in 0..1000 {
            if !array.has_room(1) {
                let capacity = array.next_capacity(1);
                let longer = ChargedArray::with_capacity(&user, capacity, GFP_KERNEL)?;
                drop(array.move_to(longer));
            }
            assert!(array.push(round).is_ok());
            assert!(memory(&user) as usize >= array.len() * 8 / 1024);
        }
        assert!(array.iter().copied().eq(0..1000));
        assert!((8..=16).contains(&memory(&user)));
        drop(array);
        assert_eq!(memory(&user), 0);
        Ok(())
    }

    #[test]
    fn an_array_above_the_limit_is_refused() -> Result {
        let user = account(true)?;
        let length = 1 << 41;
        let array = ChargedArray::<u64>::with_capacity(&user, length, GFP_KERNEL);
        assert!(array.is_err_and(|error| error == EAGAIN));
        assert_eq!(memory(&user), 0);
        Ok(())
    }
}
