package dev.penstock.actors.collective;

import dev.penstock.cuda.device.Tensor;

/** A group of one: everything is done before it begins. */
public final class SoloGroup implements CollectiveGroup {
    /** The only one that is needed. */
    public static final SoloGroup GROUP = new SoloGroup();

    /** A collective that nothing is left to do for. */
    public static final Collective DONE =
            new Collective() {
                @Override
                public boolean advance() {
                    return true;
                }

                @Override
                public String describe() {
                    return "nothing";
                }
            };

    private SoloGroup() {}

    @Override
    public int size() {
        return 1;
    }

    @Override
    public int index() {
        return 0;
    }

    @Override
    public Collective reduceScatter(Tensor whole, ShardMap map) {
        return DONE;
    }

    @Override
    public Collective allGather(Tensor whole, ShardMap map) {
        return DONE;
    }

    @Override
    public Collective allReduce(Tensor tensor) {
        return DONE;
    }

    @Override
    public Collective pass(Tensor sent, Tensor received) {
        throw new IllegalStateException(
                "nobody to pass anything to: a ring has two members or more");
    }

    @Override
    public void await(Collective collective) {}

    @Override
    public long sentBytes(CollectiveKind kind) {
        return 0;
    }
}
