package dev.penstock.runtime.cli.schedule;

import dev.penstock.schedules.ir.ScheduleFormat;
import java.util.ArrayList;
import picocli.CommandLine.ITypeConverter;
import picocli.CommandLine.TypeConversionException;

/** The formats of orders, for picocli: what completion offers and what options read. */
final class OrderFormats extends ArrayList<String> {
    private static final long serialVersionUID = 1L;

    OrderFormats() {
        super(ScheduleFormat.labels());
    }

    /** Reads the name of a format. */
    static final class Converter implements ITypeConverter<ScheduleFormat> {
        @Override
        public ScheduleFormat convert(String value) {
            try {
                return ScheduleFormat.named(value);
            } catch (IllegalArgumentException e) {
                throw new TypeConversionException(String.valueOf(e.getMessage()));
            }
        }
    }
}
