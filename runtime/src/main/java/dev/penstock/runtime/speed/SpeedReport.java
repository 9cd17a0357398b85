package dev.penstock.runtime.speed;

import java.util.List;
import java.util.Optional;

/**
 * What was measured, and what follows.
 *
 * @param device by its name
 * @param memoryBytesPerSecond of a copy in the device's memory, read and written; 0 if not measured
 * @param missing parts without figures, and why
 */
public record SpeedReport(
        String device,
        List<Product> products,
        double memoryBytesPerSecond,
        List<LinkRate> links,
        Optional<DiskRate> disk,
        List<SpeedEstimate> estimates,
        List<Missing> missing) {
    public SpeedReport {
        products = List.copyOf(products);
        links = List.copyOf(links);
        estimates = List.copyOf(estimates);
        missing = List.copyOf(missing);
    }

    /**
     * A matrix product at the size of a sample's hidden layer.
     *
     * @param model the sample
     * @param size rows x columns x outputs
     */
    public record Product(String model, String precision, String size, double flopsPerSecond) {}

    /** A part without figures. */
    public record Missing(String part, String reason) {}
}
