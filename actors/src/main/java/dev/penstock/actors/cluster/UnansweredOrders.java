package dev.penstock.actors.cluster;

import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;

/**
 * Orders to a run's nodes that have not been answered. A connection that breaks takes messages with
 * it, and nobody is told; so orders are given again and again, with the same number. A node that
 * has done what it is told answers as it did before.
 */
final class UnansweredOrders {
    /** Between two times that an order is given. */
    static final int SECONDS = 10;

    private final Consumer<ClusterEffect> out;
    private final List<Unanswered> orders = new ArrayList<>();
    private long lastNumber;

    private static final class Unanswered {
        private final ClusterEffect.Order order;
        private int seconds;

        private Unanswered(ClusterEffect.Order order) {
            this.order = order;
        }
    }

    UnansweredOrders(Consumer<ClusterEffect> out) {
        this.out = out;
    }

    /** For an order that is new. */
    long nextNumber() {
        return ++lastNumber;
    }

    void give(ClusterEffect.Order order) {
        orders.add(new Unanswered(order));
        out.accept(order);
    }

    /** Whether the answer is the first to that order. */
    boolean answered(String node, long number) {
        return orders.removeIf(
                each -> each.order.node().equals(node) && each.order.number() == number);
    }

    /** A node is gone, or is to do nothing of it any more. */
    void forget(String node) {
        orders.removeIf(each -> each.order.node().equals(node));
    }

    void clear() {
        orders.clear();
    }

    /** A second has passed. */
    void onTick() {
        for (Unanswered each : orders) {
            if (++each.seconds % SECONDS == 0) {
                out.accept(each.order);
            }
        }
    }
}
