package dev.penstock.schedules.validate;

/** A schedule was refused; the report says why. */
public final class InvalidScheduleException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    private final transient ValidationReport report;

    public InvalidScheduleException(ValidationReport report) {
        super(report.describe());
        this.report = report;
    }

    public ValidationReport report() {
        return report;
    }
}
