package dev.penstock.actors.collective;

/** A group as its owner sees it, who ends the membership. */
public interface OpenGroup extends CollectiveGroup, AutoCloseable {
    /**
     * Leaves. Afterwards nobody touches this member's tensors any more; what others still wait for
     * fails.
     */
    @Override
    void close();
}
