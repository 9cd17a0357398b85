package dev.penstock.cuda.kernels;

import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.DeviceException;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.device.TokenBlocks;
import java.util.Locale;

/**
 * Shape and type rules. Each throws one sentence naming the op, what was expected and what came.
 */
final class TensorRules {
    private TensorRules() {}

    static void matrix(String op, String name, Tensor tensor, DType type, int rows, int columns) {
        if (tensor.type() != type || tensor.rows() != rows || tensor.columns() != columns) {
            throw new DeviceException(
                    "%s: expected %s %s [%d, %d], got %s"
                            .formatted(op, name, type, rows, columns, shape(tensor)));
        }
    }

    /** An F32 matrix. */
    static void matrix(String op, String name, Tensor tensor, int rows, int columns) {
        matrix(op, name, tensor, DType.F32, rows, columns);
    }

    /** An F32 vector. */
    static void vector(String op, String name, Tensor tensor, int columns) {
        matrix(op, name, tensor, DType.F32, 1, columns);
    }

    static void type(String op, String name, Tensor tensor, DType type) {
        if (tensor.type() != type) {
            throw new DeviceException(
                    "%s: expected %s in %s, got %s".formatted(op, name, type, shape(tensor)));
        }
    }

    /** F32; also the type in which factors are multiplied. */
    static void factor(String op, String name, Tensor tensor, DType multiply) {
        boolean right =
                switch (multiply) {
                    case F32, BF16, F16 -> tensor.type() == DType.F32 || tensor.type() == multiply;
                    case I32, I8, I64, DYNAMIC8, DYNAMIC8_POSITIVE -> false;
                };
        if (!right) {
            throw new DeviceException(
                    "%s: expected factors in F32 or in the type of the products, F32, BF16 or F16; got %s products of %s %s"
                            .formatted(op, multiply, name, shape(tensor)));
        }
    }

    /** An F32 matrix, or a BF16 one where a device writes those. */
    static void result(
            String op, String name, Tensor tensor, int rows, int columns, boolean halves) {
        boolean rounded = halves && tensor.type() == DType.BF16;
        matrix(op, name, tensor, rounded ? DType.BF16 : DType.F32, rows, columns);
    }

    static void dense(String op, String name, Tensor tensor) {
        if (!tensor.isDense()) {
            throw new DeviceException(
                    "%s: expected %s without gaps between rows, got %s"
                            .formatted(op, name, shape(tensor)));
        }
    }

    static void rowsOfUnit(String op, String name, Tensor tensor, TokenBlocks blocks) {
        if (tensor.rows() != blocks.rows()) {
            throw new DeviceException(
                    "%s: expected %s with %d rows for %s, got %s"
                            .formatted(op, name, blocks.rows(), blocks, shape(tensor)));
        }
    }

    /**
     * For rules that are no matter of shape; built only when broken, so that ops allocate nothing.
     */
    static DeviceException broken(String op, String expected, Object got) {
        return new DeviceException("%s: expected %s, got %s".formatted(op, expected, got));
    }

    static String shape(Tensor tensor) {
        String gaps = tensor.isDense() ? "" : " stride " + tensor.stride();
        return String.format(
                Locale.ROOT,
                "%s [%d, %d]%s of '%s'",
                tensor.type(),
                tensor.rows(),
                tensor.columns(),
                gaps,
                tensor.buffer().name());
    }
}
