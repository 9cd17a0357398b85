package dev.penstock.actors.collective;

import dev.penstock.cuda.device.Tensor;
import java.util.function.Supplier;

/** A group of one of the {@link Strands} of a rank. That strand only. */
final class StrandGroup implements CollectiveGroup {
    private final Strands strands;
    private final CollectiveGroup group;

    StrandGroup(Strands strands, CollectiveGroup group) {
        this.strands = strands;
        this.group = group;
    }

    private <T> T talking(Supplier<T> call) {
        strands.talk().lock();
        try {
            return call.get();
        } finally {
            strands.talk().unlock();
        }
    }

    private Collective begin(Supplier<Collective> call) {
        Collective begun = talking(call);
        return new Collective() {
            @Override
            public boolean advance() {
                return talking(begun::advance);
            }

            @Override
            public String describe() {
                return talking(begun::describe);
            }
        };
    }

    @Override
    public int size() {
        return group.size();
    }

    @Override
    public int index() {
        return group.index();
    }

    @Override
    public Collective reduceScatter(Tensor whole, ShardMap map) {
        return begin(() -> group.reduceScatter(whole, map));
    }

    @Override
    public Collective allGather(Tensor whole, ShardMap map) {
        return begin(() -> group.allGather(whole, map));
    }

    @Override
    public Collective allReduce(Tensor tensor) {
        return begin(() -> group.allReduce(tensor));
    }

    @Override
    public Collective pass(Tensor sent, Tensor received) {
        return begin(() -> group.pass(sent, received));
    }

    @Override
    public void await(Collective collective) {
        if (!collective.advance()) {
            strands.withoutTurn(() -> group.await(collective));
        }
    }

    @Override
    public long sentBytes(CollectiveKind kind) {
        return group.sentBytes(kind);
    }
}
