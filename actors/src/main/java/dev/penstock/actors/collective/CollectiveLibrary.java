package dev.penstock.actors.collective;

/**
 * Whether devices sum and gather by a library of their maker (NCCL), whose order of addends is its
 * own.
 */
public enum CollectiveLibrary {
    /** Never: sums are in rank order, with the same bits whoever lives where. */
    NEVER,
    /** In groups all of whose members have it, each a device of its own. */
    WHERE_FOUND,
    /** Always; a group that cannot is an error. */
    REQUIRED
}
