-- Names that identify device vendors: event categories, runtime calls, device names, device types.
--
-- A built-in table, the same for every store: sql/tables/vendors.csv, with one line per fact. To add a vendor, add
-- lines. Rules for kernel names are in sql/ingest/kernel_classes.csv.
CREATE OR REPLACE VIEW vendors AS
-- Columns:
--   vendor          VARCHAR      Vendor; NULL: several or all.
--   fact            VARCHAR      Kind of fact: category (of events), call_prefix (of runtime and driver calls), device_type, device_name (word in a model name), backend (word in a communication backend) or torch_device.
--   value           VARCHAR      Category, prefix, name or word. A star in a category matches any string.
--   priority        INTEGER [1]  For device_type: if a trace has evidence of several vendors, the vendor with the lowest priority is used.
--   stored_table    VARCHAR      For category: table that stores its events.
--   kind            VARCHAR      For a category in gpu_ops: kernel, memcpy, memset or sync.
--   lane_is_stream  BOOLEAN      For a category in gpu_ops: whether the thread id is the stream if no argument contains it.
SELECT x.*
FROM stored.vendors AS x
