package dev.penstock.runtime.model.shape;

import java.util.Optional;

/** How a token's place in its sequence enters the model. */
public sealed interface Positions {
    /**
     * A table of vectors that are added to the embedded tokens, one for each place.
     *
     * @param most rows of the table
     */
    record Learned(int most) implements Positions {
        @Override
        public int tableRows() {
            return most;
        }
    }

    /**
     * Queries and keys are turned (Su et al., arXiv 2104.09864): of a head of k columns, i and i +
     * k/2 by the angle {@code place * theta^(-2i/k)}; or, of neighbours, 2i and 2i + 1 by {@code
     * place * theta^(-i/(k/2 - 1))} (RetNet, arXiv 2307.08621).
     *
     * @param most tokens of the longest sequence that the model is meant for
     * @param stretch of the wavelengths, if any
     * @param neighbours whether neighbours turn together
     */
    record Rotary(int most, double theta, Optional<Stretch> stretch, boolean neighbours)
            implements Positions {
        /** Of halves. */
        public Rotary(int most, double theta, Optional<Stretch> stretch) {
            this(most, theta, stretch, false);
        }

        public Rotary {
            if (most < 1 || !(theta > 0)) {
                throw new IllegalArgumentException(
                        "expected 1 place or more and a theta above 0, got %d and %s"
                                .formatted(most, theta));
            }
        }

        @Override
        public int tableRows() {
            return 0;
        }

        /**
         * Returns the angle from one place to the next of each pair of columns.
         *
         * @param size columns of a head, even
         */
        public double[] frequencies(int size) {
            double[] frequencies = new double[size / 2];
            for (int i = 0; i < frequencies.length; i++) {
                double share = neighbours ? i / Math.max(1, size / 2.0 - 1) : 2.0 * i / size;
                double plain = Math.pow(theta, -share);
                frequencies[i] = stretch.map(s -> s.of(plain)).orElse(plain);
            }
            return frequencies;
        }
    }

    /**
     * Llama 3's stretch of long wavelengths. Those above {@code original / low} are multiplied by
     * the factor, those below {@code original / high} stay, and in between the frequencies blend.
     *
     * @param original tokens of the sequences that the model saw before
     */
    record Stretch(double factor, double low, double high, int original) {
        public Stretch {
            if (!(factor >= 1) || !(low > 0) || !(high > low) || original < 1) {
                throw new IllegalArgumentException(
                        "expected a factor from 1, 0 < low < high and an original length from 1, got factor %s, low %s, high %s, original %d"
                                .formatted(factor, low, high, original));
            }
        }

        private double of(double frequency) {
            double wavelength = 2 * Math.PI / frequency;
            if (wavelength > original / low) {
                return frequency / factor;
            }
            if (wavelength < original / high) {
                return frequency;
            }
            double share = (original / wavelength - low) / (high - low);
            return share * frequency + (1 - share) * frequency / factor;
        }
    }

    /** Returns the tokens of the longest sequence that the model can read. */
    int most();

    /** Returns the rows of a learned table; 0 without one. */
    int tableRows();
}
