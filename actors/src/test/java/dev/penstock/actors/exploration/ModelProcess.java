package dev.penstock.actors.exploration;

import dev.penstock.actors.node.HostedRank;
import dev.penstock.actors.node.NodeInfo;
import dev.penstock.actors.rank.RankAssignment;
import dev.penstock.actors.rank.RankCommand;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** A process with room for a rank, and what is on its way from and to supervisors. */
final class ModelProcess {
    private static final long FIRST_PID = 100;

    final int number;
    final NodeInfo info;
    private boolean lives = true;

    /** Of the supervisor whom its node follows. */
    private int epoch;

    private @Nullable ModelRank rank;

    /** By supervisor. */
    final List<List<Order>> orders = new ArrayList<>();

    /** By supervisor. */
    final List<List<Word>> words = new ArrayList<>();

    ModelProcess(int number, NodeInfo info, int supervisors) {
        this.number = number;
        this.info = info;
        for (int i = 0; i < supervisors; i++) {
            hearsOfASupervisor();
        }
    }

    static long pid(int number) {
        return FIRST_PID + number;
    }

    static int numberOf(NodeInfo node) {
        return (int) (node.pid() - FIRST_PID);
    }

    boolean lives() {
        return lives;
    }

    @Nullable ModelRank rank() {
        return rank;
    }

    boolean hasOrders() {
        for (List<Order> some : orders) {
            if (!some.isEmpty()) {
                return true;
            }
        }
        return false;
    }

    /** Whether it may do something now. */
    boolean mayMove(ModelWorld world) {
        ModelRank there = rank;
        return lives && (hasOrders() || (there != null && there.mayFinish(world)));
    }

    void hearsOfASupervisor() {
        orders.add(new ArrayList<>());
        words.add(new ArrayList<>());
    }

    void takeOrder(ModelWorld world, int from) {
        switch (orders.get(from).removeFirst()) {
            case Order.Ask(int asked) -> {
                epoch = Math.max(epoch, asked);
                introduces(world, from);
            }
            case Order.Host(RankAssignment birth) -> host(world, birth, from);
            case Order.Tell(int birth, RankCommand command) -> {
                ModelRank there = rank;
                if (there != null && there.birth == birth) {
                    boolean fenced =
                            command instanceof RankCommand.Fence
                                    && command.epoch() >= there.epoch();
                    order(world, there, command, from);
                    if (fenced) {
                        dies(world);
                    }
                }
            }
            case Order.Dismiss(HostedRank stray, RankCommand command) -> {
                ModelRank there = rank;
                if (there != null && hosted(there).equals(stray)) {
                    order(world, there, command, from);
                }
            }
        }
    }

    private void order(ModelWorld world, ModelRank there, RankCommand command, int from) {
        if (!there.take(world, command, from)) {
            rank = null;
        }
    }

    private static HostedRank hosted(ModelRank rank) {
        return new HostedRank(rank.rank, rank.birth);
    }

    private void introduces(ModelWorld world, int to) {
        List<HostedRank> hosted = rank == null ? List.of() : List.of(hosted(rank));
        world.says(number, to, new Word.Introduction(epoch, hosted));
    }

    private void host(ModelWorld world, RankAssignment birth, int from) {
        if (birth.epoch() < epoch) {
            return;
        }
        ModelRank there = rank;
        world.says(number, from, new Word.Hosted(birth.rank(), birth.epoch()));
        if (there == null || there.birth != birth.epoch()) {
            boolean isFormer = there == null || there.birth < birth.epoch();
            world.require(isFormer, "%s and one before it in one process", there);
            rank = new ModelRank(world, number, birth, from);
        }
    }

    void finishesPass(ModelWorld world) {
        ModelRank there = rank;
        if (there != null) {
            there.finish(world);
        }
    }

    void dies(ModelWorld world) {
        lives = false;
        rank = null;
        orders.forEach(List::clear);
        world.isDead(number);
    }
}
