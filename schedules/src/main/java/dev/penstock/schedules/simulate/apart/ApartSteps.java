package dev.penstock.schedules.simulate.apart;

import java.util.stream.LongStream;

/**
 * The steps of a replica that takes them alone and exchanges its parameters with others, fragment
 * by fragment, in the manner of the simulator of Streaming DiLoCo (arXiv 2501.18512, section 3.1):
 * for each layer a forward, a backward for its input (but of the first layer), one for its weights,
 * all equally long; and when it is the turn of the layer's fragment, an exchange, which begins
 * behind the layer's last backward. Exchanges take one link, one after another.
 *
 * <pre>
 *   computations   F0 F1 F2  I2 W2 I1 W1 W0 | F0 .. of the next step: F(l) waits for E(l)
 *   link                          E2 E1 E0
 * </pre>
 *
 * <p>With a lag the forwards of so many steps more do not wait. Layer l belongs to fragment l
 * modulo their number. A sum of gradients in every step is one fragment in every step.
 *
 * @param layers of the model, equally large
 * @param between steps from one fragment's turn to the next one's
 * @param lag see above
 * @param fragments that take turns
 */
public record ApartSteps(int layers, int between, int lag, int fragments) {
    public ApartSteps {
        if (layers < 1 || between < 1 || lag < 0 || fragments < 1 || fragments > layers) {
            throw new IllegalArgumentException(
                    "expected layers, steps between turns, 1 to %d fragments and a lag of 0 or more, got %d, %d, %d, %d"
                            .formatted(layers, layers, between, fragments, lag));
        }
    }

    /**
     * Returns the share of the time in which the replica computes, over a round in which every
     * fragment has its turn once, and until the last exchange has ended.
     *
     * @param exchange how long all layers take to be exchanged, in units of a step's computations
     */
    public double utilisation(double exchange) {
        double op = 1.0 / (3 * layers - 1);
        double perLayer = exchange / layers;
        double[] there = new double[layers];
        long[] waitsFrom = LongStream.generate(() -> Long.MAX_VALUE).limit(layers).toArray();
        double now = 0;
        double link = 0;
        long steps = (long) between * fragments;
        for (long step = 0; step < steps; step++) {
            for (int layer = 0; layer < layers; layer++) {
                if (step >= waitsFrom[layer]) {
                    now = Math.max(now, there[layer]);
                }
                now += op;
            }
            boolean turn = (step + 1) % between == 0;
            long fragment = step / between;
            for (int layer = layers - 1; layer >= 0; layer--) {
                now += layer > 0 ? 2 * op : op;
                if (turn && layer % fragments == fragment) {
                    link = Math.max(now, link) + perLayer;
                    there[layer] = link;
                    waitsFrom[layer] = step + 1 + lag;
                }
            }
        }
        return steps / Math.max(now, link);
    }
}
