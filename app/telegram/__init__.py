"""The Telegram bot: one process that receives recordings and sends texts."""
