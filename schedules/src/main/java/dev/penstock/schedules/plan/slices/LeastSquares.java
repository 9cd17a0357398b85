package dev.penstock.schedules.plan.slices;

/** Solves small linear least-squares problems by their normal equations. */
final class LeastSquares {
    private LeastSquares() {}

    /**
     * The coefficients x that minimise |A x - b|.
     *
     * @param rows entry n is row n of A
     * @throws IllegalArgumentException if the rows do not decide every coefficient
     */
    static double[] solve(double[][] rows, double[] right) {
        int n = rows[0].length;
        var normal = new double[n][n + 1];
        for (int r = 0; r < rows.length; r++) {
            for (int i = 0; i < n; i++) {
                for (int j = 0; j < n; j++) {
                    normal[i][j] += rows[r][i] * rows[r][j];
                }
                normal[i][n] += rows[r][i] * right[r];
            }
        }
        return eliminate(normal);
    }

    private static double[] eliminate(double[][] m) {
        int n = m.length;
        var original = new double[n];
        for (int i = 0; i < n; i++) {
            original[i] = m[i][i];
        }
        for (int column = 0; column < n; column++) {
            int pivot = column;
            for (int row = column + 1; row < n; row++) {
                if (Math.abs(m[row][column]) > Math.abs(m[pivot][column])) {
                    pivot = row;
                }
            }
            double[] swap = m[column];
            m[column] = m[pivot];
            m[pivot] = swap;
            if (Math.abs(m[column][column]) <= 1e-12 * Math.abs(original[column])) {
                throw new IllegalArgumentException(
                        "the samples do not decide all %d coefficients; try more different ones"
                                .formatted(n));
            }
            for (int row = 0; row < n; row++) {
                if (row != column) {
                    double factor = m[row][column] / m[column][column];
                    for (int k = column; k <= n; k++) {
                        m[row][k] -= factor * m[column][k];
                    }
                }
            }
        }
        var x = new double[n];
        for (int i = 0; i < n; i++) {
            x[i] = m[i][n] / m[i][i];
        }
        return x;
    }
}
