package dev.penstock.runtime.model.parameters;

import dev.penstock.actors.collective.Collective;
import dev.penstock.actors.collective.CollectiveGroup;
import dev.penstock.actors.collective.SoloGroup;
import java.util.LinkedHashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Parameters of a stage that are sharded among its replicas: gathered for the first holder,
 * released after the last. All replicas run the same program, so all gather in the same order.
 * Confined to the rank's thread.
 */
public final class ParameterGatherer implements Collective {
    /** Parameters that are gathered and released together. */
    public interface Group {
        /** Finds room and begins to gather. */
        Collective gather(CollectiveGroup replicas);

        /** Called when all parts have arrived. */
        void arrived();

        /** Gives the room back; the rank's own part stays. */
        void release();
    }

    /** The time from a first hold to a last drop. */
    private static final class Stay {
        private int holds;
        private @Nullable Collective underWay;
    }

    private final Map<Group, Stay> stays = new LinkedHashMap<>();
    private CollectiveGroup replicas = SoloGroup.GROUP;
    private long nanos;

    /** Returns the time spent here so far: beginning gathers, advancing them, waiting for them. */
    public long nanos() {
        return nanos;
    }

    /** An epoch begins: parameters gathered in an earlier one are void. */
    public void connect(CollectiveGroup newReplicas) {
        dropAll();
        replicas = newReplicas;
    }

    /**
     * A pass begins: drops what the previous one kept to its end. Since then the optimizer may have
     * changed the parameters.
     */
    public void dropAll() {
        stays.keySet().forEach(Group::release);
        stays.clear();
    }

    /** Holds a group, and begins to gather it if nothing held it before. */
    public void hold(Group group) {
        Stay stay = stays.computeIfAbsent(group, _ -> new Stay());
        if (stay.holds++ == 0) {
            long begun = System.nanoTime();
            stay.underWay = group.gather(replicas);
            nanos += System.nanoTime() - begun;
        }
    }

    /** Blocks until a held group has arrived. */
    public void await(Group group) {
        Stay stay = stays.get(group);
        if (stay != null && stay.underWay != null) {
            long begun = System.nanoTime();
            replicas.await(stay.underWay);
            arrived(group, stay);
            nanos += System.nanoTime() - begun;
        }
    }

    /** Ends a hold; the last one releases the group, once the other replicas have their parts. */
    public void drop(Group group) {
        Stay stay = stays.get(group);
        if (stay == null) {
            throw new IllegalStateException("released parameters that were not gathered");
        }
        if (--stay.holds == 0) {
            await(group);
            stays.remove(group);
            group.release();
        }
    }

    /** Advances all gathers. */
    @Override
    public boolean advance() {
        if (stays.isEmpty()) {
            return true;
        }
        long begun = System.nanoTime();
        boolean all = advanceAll();
        nanos += System.nanoTime() - begun;
        return all;
    }

    private boolean advanceAll() {
        boolean all = true;
        for (Map.Entry<Group, Stay> each : stays.entrySet()) {
            Collective gather = each.getValue().underWay;
            if (gather != null) {
                if (gather.advance()) {
                    arrived(each.getKey(), each.getValue());
                } else {
                    all = false;
                }
            }
        }
        return all;
    }

    private static void arrived(Group group, Stay stay) {
        stay.underWay = null;
        group.arrived();
    }

    @Override
    public String describe() {
        for (Stay stay : stays.values()) {
            if (stay.underWay != null) {
                return stay.underWay.describe();
            }
        }
        return "nothing";
    }
}
