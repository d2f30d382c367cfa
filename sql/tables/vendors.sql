-- What device vendors are known by: event categories, runtime calls, device names, device types.
--
-- A list of the library, the same for every store: sql/tables/vendors.csv. One line per fact; a new vendor
-- is new lines. Rules for kernel names are in sql/ingest/kernel_classes.csv.
CREATE OR REPLACE VIEW vendors AS
-- Columns:
--   vendor          VARCHAR      Vendor; NULL: of several or of all.
--   fact            VARCHAR      category (of events), call_prefix (of runtime and driver calls), device_type, device_name (word in a model name), backend (word in a communication backend), torch_device.
--   value           VARCHAR      The category, prefix, name or word. A star in a category stands for any text.
--   priority        INTEGER [1]  Of a device_type: if a trace has evidence of several vendors, the lowest decides.
--   stored_table    VARCHAR      Of a category: table that its spans go to.
--   kind            VARCHAR      Of a category in gpu_ops: kernel, memcpy, memset or sync.
--   lane_is_stream  BOOLEAN      Of a category in gpu_ops: whether the thread id is the stream if no argument has it.
SELECT
    x.vendor,
    x.fact,
    x.value,
    x.priority,
    x.stored_table,
    x.kind,
    x.lane_is_stream
FROM stored.vendors AS x
