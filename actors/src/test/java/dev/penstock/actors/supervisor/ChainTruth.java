package dev.penstock.actors.supervisor;

import dev.penstock.actors.spi.StepKind;
import java.util.ArrayList;
import java.util.List;

/** The losses of a {@link ChainStage} pipeline by its closed form, in double precision. */
final class ChainTruth {
    private ChainTruth() {}

    static List<Double> losses(ChainStage.Settings settings, int steps, double clipNorm) {
        double[] w = new double[settings.stages()];
        for (int s = 0; s < w.length; s++) {
            w[s] = ChainStage.initialWeight(settings, s);
        }
        List<Double> losses = new ArrayList<>();
        for (int step = 1; step <= steps; step++) {
            double loss = mean(settings, step) * product(w);
            losses.add(loss);
            double[] gradient = new double[w.length];
            for (int s = 0; s < w.length; s++) {
                gradient[s] = loss / w[s];
            }
            if (settings.tied() && w.length > 1) {
                gradient[0] += gradient[w.length - 1];
                gradient[w.length - 1] = 0;
            }
            double norm = 0;
            for (double g : gradient) {
                norm += g * g;
            }
            double clip = clipNorm > 0 ? Math.min(1, clipNorm / (Math.sqrt(norm) + 1e-6)) : 1;
            for (int s = 0; s < w.length; s++) {
                w[s] -= settings.rate() * clip * gradient[s];
            }
            if (settings.tied() && w.length > 1) {
                w[w.length - 1] = w[0];
            }
        }
        return losses;
    }

    private static double product(double[] w) {
        double product = 1;
        for (double each : w) {
            product *= each;
        }
        return product;
    }

    private static double mean(ChainStage.Settings settings, int step) {
        double sum = 0;
        for (int m = 0; m < settings.microBatches(); m++) {
            for (int s = 0; s < settings.slices(); s++) {
                sum += ChainStage.data(StepKind.TRAIN, step, m, s);
            }
        }
        return sum / (settings.microBatches() * settings.slices());
    }
}
